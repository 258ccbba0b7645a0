//! Patterns of link names: `leaf0->spine1`, `leaf*-spine*#2`, `spine1`.

/// A pattern of link names, in which `*` matches any text: `a->b` is one direction, `a-b` both, and
/// `a` all links of a node. `#n` selects one of parallel cables, `#*` all; default is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPattern<'a> {
    from: &'a str,
    /// `None` for all links of `from`.
    to: Option<&'a str>,
    /// Whether it matches both directions of cables.
    pub(crate) both: bool,
    cable: &'a str,
}

impl<'a> LinkPattern<'a> {
    /// Parses a pattern. Any text is a valid pattern.
    pub fn new(name: &'a str) -> Self {
        let (ends, cable) = name.split_once('#').unwrap_or((name, FIRST));
        match (ends.split_once("->"), ends.split_once('-')) {
            (Some((from, to)), _) => Self { from, to: Some(to), both: false, cable },
            (None, Some((from, to))) => Self { from, to: Some(to), both: true, cable },
            (None, None) => Self { from: name, to: None, both: true, cable: "*" },
        }
    }

    /// Whether it matches all links of a node.
    pub fn is_node(&self) -> bool {
        self.to.is_none()
    }

    /// Whether it matches the link of this name.
    pub fn matches(&self, link: &str) -> bool {
        let (ends, cable) = link.split_once('#').unwrap_or((link, FIRST));
        let Some((from, to)) = ends.split_once("->") else { return false };
        let joins = match self.to {
            None => globs(self.from, from) || globs(self.from, to),
            Some(end) => {
                (globs(self.from, from) && globs(end, to)) || (self.both && globs(self.from, to) && globs(end, from))
            }
        };
        joins && globs(self.cable, cable)
    }
}

/// Number of the first of parallel cables, left out in names.
const FIRST: &str = "1";

/// Whether a pattern, in which `*` is any text, matches `name`.
pub fn globs(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let begins = pieces.next().and_then(|piece| name.strip_prefix(piece));
    let Some(mut left) = begins else { return false };
    let Some(end) = pieces.next_back() else { return left.is_empty() };
    // The first match of each piece leaves the most for the others.
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_links() {
        for (name, means, not) in [
            ("a->b", &["a->b"][..], &["b->a", "a->b#2", "a->c", "aa->b", "a->bb"][..]),
            ("a-b", &["a->b", "b->a"], &["a->b#2", "a->c"]),
            ("a-b#2", &["a->b#2", "b->a#2"], &["a->b", "a->b#3"]),
            ("a->b#1", &["a->b"], &["a->b#2"]),
            ("a->b#*", &["a->b", "a->b#2"], &["b->a"]),
            ("a*->b1", &["a->b1", "a0->b1", "a10->b1"], &["b1->a0", "a0->b10", "b->b1"]),
            ("a*-b*", &["a0->b1", "b1->a0"], &["a0->c1", "a0->b1#2"]),
            ("a", &["a->b", "b->a", "a->b#2"], &["a0->b", "b->c"]),
            ("*1", &["a1->b", "b->a1", "a->b11"], &["a->b", "a1x->b"]),
            ("*", &["a->b", "a->b#7"], &["a"]),
            ("", &[], &["a->b"]),
        ] {
            let pattern = LinkPattern::new(name);
            assert!(means.iter().all(|link| pattern.matches(link)), "{name}: {means:?}");
            assert!(!not.iter().any(|link| pattern.matches(link)), "{name}: not {not:?}");
        }
    }

    #[test]
    fn stars_match_any_text() {
        for (pattern, name, is_so) in [
            ("*", "", true),
            ("**", "x", true),
            ("a*", "a", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("a", "ab", false),
        ] {
            assert_eq!(globs(pattern, name), is_so, "{pattern} {name}");
        }
        // Regardless of the number of stars.
        assert!(!globs(&"*a".repeat(10_000), &"a".repeat(5_000)));
    }
}
