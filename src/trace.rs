//! Macros that emit spans and events of the crate `tracing`. Without the feature `tracing` they expand to nothing.

/// Emits an event.
macro_rules! event {
    ($level:ident, $($rest:tt)+) => {
        #[cfg(feature = "tracing")]
        tracing::event!(target: "twindex", tracing::Level::$level, $($rest)+);
    };
}

/// Opens a span that lasts until the end of the block.
macro_rules! span {
    ($name:literal, $($fields:tt)+) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::info_span!(target: "twindex", $name, $($fields)+).entered();
    };
}

pub(crate) use {event, span};
