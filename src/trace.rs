//! Spans and events for the crate `tracing`, with the feature of that name; without it they are nothing.

/// Reports something that happened.
macro_rules! event {
    ($level:ident, $($rest:tt)+) => {
        #[cfg(feature = "tracing")]
        tracing::event!(target: "twindex", tracing::Level::$level, $($rest)+);
    };
}

/// Reports that the rest of a block is one piece of work.
macro_rules! span {
    ($name:literal, $($fields:tt)+) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::info_span!(target: "twindex", $name, $($fields)+).entered();
    };
}

pub(crate) use {event, span};
