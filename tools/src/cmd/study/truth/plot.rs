//! Draws precision, recall and F1 over thresholds or radii, as in figure 1 of Manku, Jain and Das Sarma, WWW 2007.

use std::fmt::Write;

use super::row::RecallRow;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
/// Coordinates of the left, top, right and bottom edges of the plot.
const FRAME: (f64, f64, f64, f64) = (60.0, 20.0, 500.0, 360.0);

/// Selects one of the three curves: precision, recall or F1 of a row.
type Share = fn(&RecallRow) -> Option<f64>;

/// Returns the figure as a complete SVG file, without scripts, style sheets or embedded fonts.
pub(super) fn svg(rows: &[RecallRow]) -> String {
    let (left, top, right, bottom) = FRAME;
    let (least, most) = (rows.first().map_or(0.0, RecallRow::at), rows.last().map_or(1.0, RecallRow::at));
    let span = if most > least { most - least } else { 1.0 };
    let x = |at: f64| left + (at - least) / span * (right - left);
    let y = |share: f64| bottom - share * (bottom - top);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut add = |element: std::fmt::Arguments<'_>| {
        let _ = svg.write_fmt(element); // writing to a string cannot fail
        svg.push('\n');
    };
    for tenth in (0..=10).step_by(2) {
        let share = f64::from(tenth) / 10.0;
        let at = y(share);
        add(format_args!(
            "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{share:.1}</text>",
            left - 6.0,
            at + 4.0
        ));
    }
    for row in rows {
        let label = row.k.map_or_else(|| format!("{:.2}", row.at()), |k| k.to_string());
        add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            x(row.at()),
            bottom + 18.0
        ));
    }
    let axis =
        if rows.iter().any(|row| row.k.is_some()) { "Hamming radius k" } else { "threshold of resemblance" };
    add(format_args!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{axis}</text>",
        f64::midpoint(left, right),
        bottom + 42.0
    ));
    add(format_args!("<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>"));
    let curves: [(&str, &str, &str, Share); 3] = [
        ("precision", "#0072b2", "none", |row| row.precision),
        ("recall", "#d55e00", "6 3", |row| row.recall),
        ("F1", "#009e73", "2 3", |row| row.f1),
    ];
    for (number, (name, colour, dashes, share)) in (0..).zip(curves) {
        let points: Vec<String> =
            rows.iter().filter_map(|row| Some(format!("{:.1},{:.1}", x(row.at()), y(share(row)?)))).collect();
        let at = top + 20.0 + 22.0 * f64::from(number);
        add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>",
            points.join(" ")
        ));
        add(format_args!(
            "<line x1=\"{}\" y1=\"{at}\" x2=\"{}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/><text x=\"{}\" y=\"{}\">{name}</text>",
            right + 16.0,
            right + 46.0,
            right + 54.0,
            at + 4.0
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_has_a_point_for_each_known_value() {
        let rows: Vec<RecallRow> =
            (0..=10).map(|k| RecallRow { k: Some(k), ..RecallRow::of(k.into(), 0, 4) }).collect();
        let svg = svg(&rows);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        let points: Vec<usize> = svg
            .split("points=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().split(' ').count())
            .collect();
        assert_eq!(points, [10, 11, 11], "precision is not known where nothing is found");
        assert!(svg.contains("Hamming radius k") && !svg.contains("NaN"));
    }
}
