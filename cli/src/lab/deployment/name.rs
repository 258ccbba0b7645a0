use std::str::FromStr;

/// The name of a fabric: 1 to 64 letters, digits, `-`, `_` or `.`, not starting with `.`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub String);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with('.') {
            return Ok(Self(text.into()));
        }
        Err(format!("`{text}` is not 1 to 64 letters, digits, `-`, `_` or `.`"))
    }
}
