//! Lines of words with columns.

use spray_fabric::FileError;

/// A number in the file, and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub id: u64,
    pub line: usize,
    pub column: usize,
}

/// A word and its column in characters, from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub column: usize,
}

pub(super) struct Line<'a> {
    pub number: usize,
    pub words: Vec<Word<'a>>,
}

pub(super) fn words(full: &str) -> Vec<Word<'_>> {
    let text = full.split('#').next().unwrap_or_default();
    let column = |word: &str| 1 + text[..word.as_ptr() as usize - text.as_ptr() as usize].chars().count();
    text.split_whitespace().map(|word| Word { text: word, column: column(word) }).collect()
}

impl Line<'_> {
    pub fn error(&self, word: Word<'_>, message: String) -> FileError {
        FileError { line: self.number, column: word.column, message }
    }

    /// Parses the integer at word `at`, also written as `2e6` or `2.0`; if it is missing the error is
    /// at the word before it.
    pub fn number(&self, at: usize) -> Result<u64, FileError> {
        match self.decimal(at)? {
            (number, false) => Ok(number),
            (_, true) => {
                let message =
                    format!("`{}` is {}; allowed: a whole number", self.words[at - 1].text, self.words[at].text);
                Err(self.error(self.words[at], message))
            }
        }
    }

    /// Parses the number at word `at`. Returns its integral part, and whether it has a fraction.
    pub fn decimal(&self, at: usize) -> Result<(u64, bool), FileError> {
        let before = self.words[at - 1];
        let Some(word) = self.words.get(at) else {
            return Err(self.error(before, format!("`{}` needs a value; allowed: a whole number", before.text)));
        };
        if let Ok(number) = word.text.parse() {
            return Ok((number, false));
        }
        // Integers up to here are exact.
        let decimal = word.text.parse().ok().filter(|decimal: &f64| (0.0..9e15).contains(decimal));
        let message = || format!("`{}` is {}; allowed: a whole number", before.text, word.text);
        let decimal = decimal.ok_or_else(|| self.error(*word, message()))?;
        Ok((decimal as u64, decimal.fract() != 0.0))
    }

    /// Parses the value of a line of two words, with its position.
    pub fn count(&self) -> Result<Reference, FileError> {
        Ok(Reference { id: self.only_number()?, line: self.number, column: self.words[0].column })
    }

    /// Parses the value of a line of two words.
    pub fn only_number(&self) -> Result<u64, FileError> {
        match self.words.get(2) {
            Some(extra) => Err(self.error(*extra, format!("`{}` is one too many; allowed: one number", extra.text))),
            None => self.number(1),
        }
    }
}
