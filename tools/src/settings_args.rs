//! Converts settings of `twindex_corpus` to options of the command line.

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use twindex_corpus::settings::{AnySettings, Kind, Setting, Settings, Value};

/// Describes how the option for a setting in a verb differs from the option in `dedup`.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The name of the setting.
    pub(crate) setting: &'static str,
    /// The help text, with the default. It replaces the help text of `dedup`. Its first line is the short help.
    pub(crate) help: &'static str,
    /// Whether the option may be given more than once.
    pub(crate) repeats: bool,
    /// The forms of the value that the verb rejects, such as `within:K`, each with the reason.
    pub(crate) refused: &'static [(&'static str, &'static str)],
    /// The largest K of `within:K`; `None` if the setting limits it.
    pub(crate) within_max: Option<u16>,
}

impl Difference {
    /// Creates a difference in the help text only.
    pub(crate) const fn of(setting: &'static str, help: &'static str) -> Self {
        Self { setting, help, repeats: false, refused: &[], within_max: None }
    }

    /// Returns an error if the verb rejects this value.
    pub(crate) fn check(&self, text: &OsStr) -> Result<(), String> {
        let text = text.to_string_lossy();
        let within = text.strip_prefix("within:").and_then(|within| within.parse::<u16>().ok());
        if let (Some(within), Some(max)) = (within, self.within_max)
            && within > max
        {
            return Err(format!("an index finds within:0 to within:{max}, found {text}"));
        }
        let is_refused =
            |form: &str| text.starts_with(form.trim_end_matches(|c: char| c.is_ascii_uppercase()));
        match self.refused.iter().find(|(form, _)| is_refused(form)) {
            Some((_, why)) => Err(format!("{text} is not taken here: {why}")),
            None => Ok(()),
        }
    }
}

/// Selects the settings of a struct that are options of a verb.
pub(crate) trait Pick: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// The names of the selected settings; `None` selects all settings.
    const NAMES: Option<&'static [&'static str]>;
    /// The names of settings to exclude.
    const OMITTED: &'static [&'static str] = &[];
    /// The settings whose options differ from those of `dedup`.
    const DIFFERS: &'static [Difference] = &[];
}

/// Selects all settings of a struct.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct All;

impl Pick for All {
    const NAMES: Option<&'static [&'static str]> = None;
}

/// Declares a type that implements `Pick` for some settings, optionally with their differences from `dedup`.
macro_rules! pick {
    ($name:ident: all but $($setting:literal),+) => {
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name;

        impl $crate::settings_args::Pick for $name {
            const NAMES: Option<&'static [&'static str]> = None;
            const OMITTED: &'static [&'static str] = &[$($setting),+];
        }
    };
    ($name:ident: $($setting:literal),+ $(; $differs:expr)?) => {
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name;

        impl $crate::settings_args::Pick for $name {
            const NAMES: Option<&'static [&'static str]> = Some(&[$($setting),+]);
            $(const DIFFERS: &'static [$crate::settings_args::Difference] = $differs;)?
        }
    };
}

pub(crate) use pick;

/// The name of the setting that becomes the positional arguments.
const POSITIONAL: &str = "inputs";

/// The options for the settings of `S` that `P` selects.
#[derive(Clone, Debug)]
pub(crate) struct Options<S, P = All> {
    /// The names and values of the settings given on the command line.
    given: Vec<(&'static str, Vec<OsString>)>,
    /// The settings: given values, and default values of all other settings.
    pub(crate) settings: S,
    picked: PhantomData<P>,
}

impl<S: Settings, P: Pick> Default for Options<S, P> {
    fn default() -> Self {
        Self { given: Vec::new(), settings: S::default(), picked: PhantomData }
    }
}

impl<S, P> std::ops::Deref for Options<S, P> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.settings
    }
}

fn picked<S: Settings, P: Pick>() -> impl Iterator<Item = &'static Setting<S>> {
    let is_picked =
        |name: &&str| P::NAMES.is_none_or(|names| names.contains(name)) && !P::OMITTED.contains(name);
    S::TABLE.iter().filter(move |setting| is_picked(&setting.name))
}

impl<S: Settings, P: Pick> Options<S, P> {
    /// Overrides `settings` with the given values.
    pub(crate) fn apply(&self, settings: &mut S) {
        for (name, texts) in &self.given {
            let texts: Vec<&OsStr> = texts.iter().map(OsString::as_os_str).collect();
            // This cannot fail, because the values were accepted when they were parsed.
            let _ = AnySettings::set(settings, name, &texts);
        }
    }

    /// Returns whether a setting was given.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| *given == name)
    }

    /// Returns the values given for a setting, in the order of the command line.
    pub(crate) fn values<T: Value>(&self, name: &str) -> Vec<T> {
        let texts = self.given.iter().filter(|(given, _)| *given == name).flat_map(|(_, texts)| texts);
        texts.filter_map(|text| T::parse(text).ok()).collect()
    }

    /// Returns the name of the first option that was given; `None` if there is none.
    pub(crate) fn first_given(&self) -> Option<String> {
        let mut options = self.given.iter().filter(|(name, _)| *name != POSITIONAL);
        options.next().map(|(name, _)| twindex_corpus::settings::spelled(name))
    }
}

fn argument<S: Settings, P: Pick>(setting: &'static Setting<S>) -> Arg {
    let differs = P::DIFFERS.iter().find(|one| one.setting == setting.name);
    let help = differs.map(|one| one.help).filter(|help| !help.is_empty());
    let (short, long) = match help {
        Some(help) => (help.lines().next().unwrap_or_default().to_owned(), help.to_owned()),
        None => (setting.short_help(), setting.long_help()),
    };
    let mut arg = Arg::new(setting.name).help(short).long_help(with_default(setting, long));
    if setting.name == POSITIONAL {
        arg = arg.value_name(setting.form).num_args(0..).action(ArgAction::Append);
    } else {
        arg = arg.long(setting.name.replace('_', "-")).help_heading(S::HEADING);
        arg = arg.hide_short_help(setting.is_rare);
        if let Some(short) = setting.short {
            arg = arg.short(short);
        }
        if let Some(alias) = setting.alias {
            arg = arg.alias(alias.replace('_', "-"));
        }
        arg = match setting.kind {
            Kind::Flag => return arg.action(ArgAction::SetTrue),
            Kind::One if differs.is_none_or(|one| !one.repeats) => arg.action(ArgAction::Set),
            Kind::One | Kind::OneOrMore | Kind::Many => arg.action(ArgAction::Append),
        };
        arg = arg.value_name(setting.form).allow_negative_numbers(true); // the parser of the value refuses it
    }
    arg.value_parser(OsStringValueParser::new().try_map(move |text| {
        let mut settings = S::default();
        setting.read(&mut settings, &text)?;
        differs.map_or(Ok(()), |one| one.check(&text)).map(|()| text)
    }))
}

/// Adds the default value to a help text, unless the text already names it.
fn with_default<S: Settings>(setting: &Setting<S>, text: String) -> String {
    match setting.default() {
        Some(default) if !text.contains("[default:") => match text.split_once('\n') {
            Some((first, rest)) => format!("{first} [default: {default}]\n{rest}"),
            None => format!("{text} [default: {default}]"),
        },
        _ => text,
    }
}

impl<S: Settings, P: Pick> Args for Options<S, P> {
    fn augment_args(command: Command) -> Command {
        picked::<S, P>().fold(command, |command, setting| command.arg(argument::<S, P>(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Settings, P: Pick> FromArgMatches for Options<S, P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in picked::<S, P>() {
            let texts: Vec<OsString> = match setting.kind {
                Kind::Flag if matches.get_flag(setting.name) => vec!["true".into()],
                Kind::Flag => continue,
                _ => matches.get_many(setting.name).into_iter().flatten().cloned().collect(),
            };
            if !texts.is_empty() {
                let values: Vec<&OsStr> = texts.iter().map(OsString::as_os_str).collect();
                // The value parser accepted each value, but not the list.
                if let Some(Err(why)) = AnySettings::set(&mut S::default(), setting.name, &values) {
                    return Err(clap::Error::raw(ErrorKind::ValueValidation, why.to_string()));
                }
                self.given.push((setting.name, texts));
            }
        }
        let mut settings = std::mem::take(&mut self.settings);
        self.apply(&mut settings);
        self.settings = settings;
        Ok(())
    }
}
