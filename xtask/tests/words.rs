//! Plain technical English: words of the project's former dialect are rare in
//! comments of Rust files, except citations (`//=`), and in Markdown documents, both without code.
#![allow(clippy::unwrap_used, reason = "a test")]

mod files;

use std::fs;

use files::files;
use spray_test_support::root;

/// Maximum number of uses of a group in 10,000 words.
const LIMIT: f64 = 3.0;
const GROUPS: [&[&str]; 10] = [
    &["tell", "tells", "told"],
    &["whose"],
    &["nobody", "somebody", "anybody", "whoever"],
    &["so many", "so much"],
    &["of its own", "of their own", "of our own"],
    &["stand", "stands", "stood"],
    &["anew"],
    &["hear", "hears", "heard"],
    &["befall", "befalls"],
    &["whatever"],
];

/// Returns the comment at the end of a line, unless it is a citation.
fn comment(line: &str) -> Option<&str> {
    let begins = |at: &usize| {
        !line[..*at].ends_with(|c: char| !c.is_whitespace()) && line[..*at].matches('"').count().is_multiple_of(2)
    };
    let at = line.match_indices("//").map(|(at, _)| at).find(begins)?;
    let text = line[at..].trim_start_matches(['/', '!']);
    (!text.starts_with('=')).then_some(text)
}

/// Returns the words of comments or of a document in lower case, each with its line.
fn words(text: &str, is_rust: bool) -> Vec<(usize, String)> {
    let (mut words, mut is_code) = (vec![], false);
    for (number, line) in (1..).zip(text.lines()) {
        let text = if is_rust { comment(line) } else { Some(line) };
        is_code &= text.is_some();
        let text = text.unwrap_or_default();
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let prose =
                text.split('`').step_by(2).flat_map(|part| part.split(|c: char| !c.is_alphabetic() && c != '\''));
            words.extend(prose.filter(|word| !word.is_empty()).map(|word| (number, word.to_lowercase())));
        }
    }
    words
}

/// Returns the lines in which a phrase begins.
fn lines_with(phrase: &str, words: &[(usize, String)]) -> Vec<usize> {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    let is_phrase = |window: &&[(usize, String)]| window.iter().map(|(_, word)| word).eq(&phrase);
    words.windows(phrase.len()).filter(is_phrase).map(|window| window[0].0).collect()
}

#[test]
fn words_of_the_dialect_are_rare() {
    let (mut total, mut uses) = (0, GROUPS.map(|_| vec![]));
    for file in [files("rs"), files("md")].concat() {
        let words = words(&fs::read_to_string(&file).unwrap(), file.extension().is_some_and(|of| of == "rs"));
        total += words.len();
        let name = file.strip_prefix(root()).unwrap().display();
        for (group, uses) in GROUPS.iter().zip(&mut uses) {
            let lines = group.iter().flat_map(|phrase| lines_with(phrase, &words));
            uses.extend(lines.map(|line| format!("  {name}:{line}")));
        }
    }
    let mut found = vec![];
    for (group, uses) in GROUPS.iter().zip(uses) {
        let rate = uses.len() as f64 * 10_000.0 / total as f64;
        let text = format!("{rate:5.1} in 10,000 words, at most {LIMIT}: {}", group.join(", "));
        println!("{text}");
        found.extend((rate > LIMIT).then(|| [&[text], &uses[..uses.len().min(20)]].concat().join("\n")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn code_is_not_counted() {
    let rust = "//! A `b` c\nlet d = \"// e\"; // f\n//= g\n/// ```\n/// h\n/// ```\n/// I j\n";
    assert_eq!(words(rust, true).iter().map(|(_, word)| word.as_str()).collect::<String>(), "acfij");
    assert_eq!(lines_with("i j", &words(rust, true)), [7]);
    assert_eq!(words("A\n```\nb\n```\nc `d`\n", false), [(1, "a".into()), (5, "c".into())]);
}
