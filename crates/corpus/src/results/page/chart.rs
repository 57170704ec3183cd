//! Charts as SVG in an HTML page, without scripts and in the colours of the page.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Coordinates of the axes: left, top, right and bottom.
const FRAME: (f64, f64, f64, f64) = (64.0, 12.0, 628.0, 248.0);

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// A linear scale from the first to the second value.
    Linear(f64, f64),
    /// A logarithmic scale from the first to the second value. Both are above 0.
    Log(f64, f64),
}

impl Scale {
    /// Returns a logarithmic scale from 1 to a power of ten that is at least `max`.
    pub(crate) fn log_to(max: f64) -> Self {
        Self::Log(1.0, 10_f64.powf(max.max(10.0).log10().ceil()))
    }

    /// Returns a linear scale from 0 to a number that is at least `max` and has round labels.
    pub(crate) fn linear_to(max: f64) -> Self {
        let power = 10_f64.powf(max.max(5.0).log10().floor());
        let round = [1.0, 1.5, 2.0, 2.5, 5.0, 10.0].map(|part| part * power);
        Self::Linear(0.0, round.into_iter().find(|&round| round >= max.max(5.0)).unwrap_or(max))
    }

    /// Returns the position of a value on the axis, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear(min, max) => (value - min) / (max - min),
            Self::Log(min, max) => (value / min).log10() / (max / min).log10(),
        };
        place.clamp(0.0, 1.0)
    }

    /// Returns the values at which the axis has labels.
    fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear(min, max) => {
                (0..=5).map(|fifth| min + (max - min) * f64::from(fifth) / 5.0).collect()
            }
            Self::Log(min, max) => {
                let decades = (max / min).log10().round().max(1.0);
                let step = (decades / 6.0).ceil().max(1.0);
                let mut ticks = Vec::new();
                let mut decade = 0.0;
                while decade <= decades {
                    ticks.push(min * 10_f64.powf(decade));
                    decade += step;
                }
                ticks
            }
        }
    }
}

/// A chart with two axes.
pub(crate) struct Chart {
    x: Scale,
    y: Scale,
    body: String,
    legend: Vec<(&'static str, &'static str)>,
}

impl Chart {
    pub(crate) fn new(x: Scale, y: Scale) -> Self {
        Self { x, y, body: String::new(), legend: Vec::new() }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (left, top, right, bottom) = FRAME;
        (left + self.x.place(x) * (right - left), bottom - self.y.place(y) * (bottom - top))
    }

    /// Adds bars. Each bar is given by its left and right x coordinates and its height.
    pub(crate) fn bars(&mut self, class: &'static str, bars: impl IntoIterator<Item = (f64, f64, f64)>) {
        for (from, to, value) in bars {
            let ((left, top), (right, _)) = (self.at((from, value)), self.at((to, value)));
            let width = (right - left - 1.0).max(1.0);
            let height = FRAME.3 - top;
            let _ = writeln!(
                self.body,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        }
    }

    pub(crate) fn line(&mut self, class: &'static str, points: impl IntoIterator<Item = (f64, f64)>) {
        let points: Vec<String> = points
            .into_iter()
            .map(|point| {
                let (x, y) = self.at(point);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let _ = writeln!(self.body, "<polyline class=\"line {class}\" points=\"{}\"/>", points.join(" "));
    }

    pub(crate) fn dots(&mut self, class: &'static str, points: impl IntoIterator<Item = (f64, f64)>) {
        for point in points {
            let (x, y) = self.at(point);
            let _ = writeln!(self.body, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>");
        }
    }

    /// Adds an entry to the legend: the meaning of the marks of a class.
    pub(crate) fn legend(&mut self, class: &'static str, meaning: &'static str) {
        self.legend.push((class, meaning));
    }

    /// Returns the chart as an HTML figure with the names of its axes and a caption.
    pub(crate) fn figure(self, x_name: &str, y_name: &str, caption: &str) -> String {
        let (left, top, right, bottom) = FRAME;
        let mut svg = format!(
            "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title>\n",
            escaped(caption)
        );
        for tick in self.y.ticks() {
            let (_, y) = self.at((0.0, tick));
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                short(tick)
            );
        }
        for tick in self.x.ticks() {
            let (x, _) = self.at((tick, 0.0));
            // A narrow screen has a larger font, with which a centred last label would extend beyond the image.
            let anchor = if x > right - 8.0 { "end" } else { "middle" };
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                if anchor == "end" { WIDTH - 2.0 } else { x },
                bottom + 18.0,
                short(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(left, right),
            bottom + 40.0,
            escaped(x_name),
            f64::midpoint(top, bottom),
            escaped(y_name)
        );
        svg.push_str(&self.body);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{right}\"/></svg>");
        if !self.legend.is_empty() {
            let items = self.legend.iter().map(|(class, meaning)| {
                format!("<span><i class=\"key {class}\"></i> {}</span>", escaped(meaning))
            });
            let _ = writeln!(svg, "<p class=\"legend\">{}</p>", items.collect::<Vec<_>>().join(" "));
        }
        let _ = writeln!(svg, "<figcaption>{}</figcaption></figure>", escaped(caption));
        svg
    }
}

/// Formats a number as a short axis label, for example 1.5k.
fn short(value: f64) -> String {
    for (unit, name) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= unit {
            let scaled = value / unit;
            return if scaled.fract() < 0.05 {
                format!("{scaled:.0}{name}")
            } else {
                format!("{scaled:.1}{name}")
            };
        }
    }
    if value.fract().abs() < 1e-9 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').to_owned()
}

/// Escapes a text for HTML, and replaces control characters with U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_drawn_at_their_scaled_position_inside_the_frame() {
        let chart = Chart::new(Scale::Linear(0.0, 2.0), Scale::Log(1.0, 100.0));
        let (left, top, right, bottom) = FRAME;
        assert_eq!(chart.at((0.0, 1.0)), (left, bottom));
        assert_eq!(chart.at((2.0, 100.0)), (right, top));
        assert_eq!(chart.at((1.0, 10.0)), (f64::midpoint(left, right), f64::midpoint(top, bottom)));
        assert_eq!(chart.at((9.0, 0.0)), (right, bottom), "log of nothing is at the bottom");
        assert_eq!(Scale::log_to(0.0), Scale::Log(1.0, 10.0));
        assert_eq!(
            [1.0, 7.0, 1200.0].map(Scale::linear_to),
            [5.0, 10.0, 1500.0].map(|max| Scale::Linear(0.0, max))
        );
        assert_eq!(Scale::log_to(1001.0).ticks(), [1.0, 10.0, 100.0, 1000.0, 10000.0]);
    }

    #[test]
    fn figure_has_a_description_and_escapes_markup() {
        let mut chart = Chart::new(Scale::Linear(0.0, 1.0), Scale::log_to(5e6));
        chart.bars("a", [(0.0, 0.5, 3.0)]);
        chart.line("b", [(0.0, 1.0), (1.0, 5.0)]);
        chart.dots("b", [(0.5, 2.0)]);
        chart.legend("a", "things <x>");
        let figure = chart.figure("x & y", "n", "What \"it\" shows");
        for part in ["<title>What &quot;it&quot; shows</title>", "x &amp; y", "things &lt;x&gt;", ">1M<"] {
            assert!(figure.contains(part), "{part}: {figure}");
        }
        assert!(!figure.contains("NaN") && !figure.contains("inf"));
        assert_eq!(escaped("a\u{1b}[31m\n"), "a\u{fffd}[31m\u{fffd}");
    }

    #[test]
    fn axis_labels_are_short() {
        let shown = [0.0, 0.25, 0.5, 1.0, 999.0, 1000.0, 1500.0, 2e6, 3e9, 1e13].map(short);
        assert_eq!(shown, ["0", "0.25", "0.5", "1", "999", "1k", "1.5k", "2M", "3G", "10T"]);
    }
}
