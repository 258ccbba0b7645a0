//! Lines of words with columns.

use spray_fabric::FileError;

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

    /// Parses the integer at word `at`; if it is missing the error is at the word before it.
    pub fn number(&self, at: usize) -> Result<u64, FileError> {
        let before = self.words[at - 1];
        let Some(word) = self.words.get(at) else {
            return Err(self.error(before, format!("`{}` needs a value; allowed: a whole number", before.text)));
        };
        let message = || format!("`{}` is {}; allowed: a whole number", before.text, word.text);
        word.text.parse().map_err(|_| self.error(*word, message()))
    }

    /// Parses the value of a line of two words.
    pub fn only_number(&self) -> Result<u64, FileError> {
        match self.words.get(2) {
            Some(extra) => Err(self.error(*extra, format!("`{}` is one too many; allowed: one number", extra.text))),
            None => self.number(1),
        }
    }
}
