//! The settings of `twindex_corpus` as options of the command line.

use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use twindex_corpus::settings::{Kind, Setting, Settings};

/// The settings of a struct that are options of a verb.
pub(crate) trait Pick {
    /// Their names; `None` for all.
    const NAMES: Option<&'static [&'static str]>;
}

/// All settings of a struct.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct All;

impl Pick for All {
    const NAMES: Option<&'static [&'static str]> = None;
}

/// Declares a type that picks some settings.
macro_rules! pick {
    ($name:ident: $($setting:literal),+) => {
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name;

        impl $crate::settings_args::Pick for $name {
            const NAMES: Option<&'static [&'static str]> = Some(&[$($setting),+]);
        }
    };
}

pub(crate) use pick;

/// The positional arguments of verbs that read documents.
const POSITIONAL: &str = "inputs";

/// Options for the settings of `S` that `P` picks.
#[derive(Clone, Debug)]
pub(crate) struct Options<S, P = All> {
    /// The names and values that were given.
    given: Vec<(&'static str, Vec<OsString>)>,
    /// The defaults, with what was given.
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
    S::TABLE.iter().filter(|setting| P::NAMES.is_none_or(|names| names.contains(&setting.name)))
}

impl<S: Settings, P: Pick> Options<S, P> {
    /// Changes `settings` to what was given.
    pub(crate) fn apply(&self, settings: &mut S) {
        for (name, texts) in &self.given {
            let texts: Vec<&OsStr> = texts.iter().map(OsString::as_os_str).collect();
            // The values were parsed before.
            let _ = twindex_corpus::settings::AnySettings::set(settings, name, &texts);
        }
    }

    /// Returns the first option that was given, as it is spelled; `None` if there is none.
    pub(crate) fn first_given(&self) -> Option<String> {
        let mut options = self.given.iter().filter(|(name, _)| *name != POSITIONAL);
        options.next().map(|(name, _)| twindex_corpus::settings::spelled(name))
    }
}

/// Returns the option of a setting.
fn argument<S: Settings>(setting: &'static Setting<S>) -> Arg {
    let mut arg = Arg::new(setting.name).help(setting.short_help());
    arg = arg.long_help(with_default(setting, setting.long_help()));
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
            Kind::One => arg.value_name(setting.form).action(ArgAction::Set),
            Kind::Many => arg.value_name(setting.form).action(ArgAction::Append),
        };
    }
    arg.value_parser(OsStringValueParser::new().try_map(|text| {
        let mut settings = S::default();
        setting.read(&mut settings, &text).map(|()| text)
    }))
}

/// Adds the default value to a help text, unless the text has it.
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
        picked::<S, P>().fold(command, |command, setting| command.arg(argument(setting)))
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
                self.given.push((setting.name, texts));
            }
        }
        let mut settings = std::mem::take(&mut self.settings);
        self.apply(&mut settings);
        self.settings = settings;
        Ok(())
    }
}
