//! Options for splitting texts into shingles, with their Python names.

use twindex::params::{Folding, NormalForm, Shingling, Tokens};

use crate::error::{Failure, Result};

/// Returns the shingling for options that are given without versions, such as `nfkc`.
pub(crate) fn shingling(words: Option<u8>, seed: u64, named: &[(String, String)]) -> Result<Shingling> {
    let value = |wanted: &str| named.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let tokens = match value("tokens") {
        None => Tokens::Words,
        Some(name) => Tokens::named(name).ok_or_else(|| {
            let all: Vec<_> = Tokens::ALL.iter().map(|tokens| tokens.name()).collect();
            Failure::invalid(format!("tokens: expected one of {}, found {name}", all.join(", ")))
        })?,
    };
    if tokens == Tokens::Features {
        let cutting = [("words", words.is_some()), ("normal_form", value("normal-form").is_some())];
        let cutting = cutting.into_iter().chain([("fold", value("fold").is_some())]);
        if let Some((option, _)) = cutting.into_iter().find(|&(_, is_given)| is_given) {
            return Err(Failure::invalid(format!(
                "{option}: says how text is cut, and features are not cut: leave it out"
            )));
        }
        return Ok(Shingling::words(1, seed).with_tokens(tokens)?);
    }
    // The same defaults as in the command.
    let usual = match tokens {
        Tokens::Characters | Tokens::WordCharacters | Tokens::Raw => 9,
        Tokens::Sentences => 1,
        _ => 5,
    };
    let mut made = Shingling::words(words.unwrap_or(usual), seed).with_tokens(tokens)?;
    let not_built = |name: &str| Failure::invalid(format!("{name}: this twindex was built without it"));
    match value("normal-form") {
        None | Some("none") => {}
        Some("nfkc") => made.normal_form = NormalForm::nfkc().ok_or_else(|| not_built("normal_form"))?,
        Some(other) => {
            return Err(Failure::invalid(format!("normal_form: expected none or nfkc, found {other}")));
        }
    }
    for one in value("fold").unwrap_or_default().split('+').filter(|one| !one.is_empty()) {
        match one {
            "invisible" => made.folding.invisible = true,
            "marks" => {
                made.folding.marks = Some(Folding::marks_here().ok_or_else(|| not_built("fold"))?);
            }
            other => {
                let why = format!("fold: expected marks, invisible or invisible+marks, found {other}");
                return Err(Failure::invalid(why));
            }
        }
    }
    Ok(made)
}
