//! `.cm` connection matrices, without triggers.
//!
//! `Nodes N`, `Connections M`, then `SRC->DST id I start PS size BYTES` per flow; times are picoseconds. `#` starts a
//! comment.

use super::Flow;

/// What is wrong with a matrix, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MatrixError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// Parses the matrix in `text` for a fabric of `hosts` hosts; flows are numbered in the file's order.
pub fn parse_matrix(text: &str, hosts: usize) -> Result<Vec<Flow>, MatrixError> {
    let mut flows = Vec::new();
    let mut connections = None;
    for (index, full) in text.lines().enumerate() {
        let words: Vec<_> = full.split('#').next().unwrap_or_default().split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        let at = |word: &str, message: String| MatrixError {
            line: index + 1,
            column: 1 + full.find(word).unwrap_or(0),
            message,
        };
        match (first.to_ascii_lowercase().as_str(), words.get(1).and_then(|word| word.parse::<usize>().ok())) {
            ("nodes", Some(nodes)) if nodes <= hosts => {}
            ("nodes", _) => {
                return Err(at(first, format!("`Nodes` takes a number; allowed: at most the topology's {hosts}")));
            }
            ("connections", Some(count)) => connections = Some(count),
            ("connections", None) => return Err(at(first, "`Connections` takes a number".into())),
            ("triggers", Some(0)) => {}
            ("triggers" | "trigger", _) => {
                return Err(at(first, "triggers are not supported; allowed: flows with `start`".into()));
            }
            _ => flows.push(flow(&words, flows.len() as u32, hosts).map_err(|(word, message)| at(word, message))?),
        }
    }
    let end = |message: String| MatrixError { line: text.lines().count().max(1), column: 1, message };
    match connections {
        Some(count) if count != flows.len() => {
            Err(end(format!("`Connections` says {count}, the file has {}", flows.len())))
        }
        _ if flows.is_empty() => Err(end("there are no flows; allowed: `SRC->DST id I start PS size BYTES`".into())),
        _ => Ok(flows),
    }
}

fn flow<'a>(words: &[&'a str], number: u32, hosts: usize) -> Result<Flow, (&'a str, String)> {
    let pair = words[0];
    let ends = pair.split_once("->").and_then(|(src, dst)| Some((src.parse().ok()?, dst.parse().ok()?)));
    let Some((src, dst)) = ends else {
        return Err((pair, format!("`{pair}` is no flow; allowed: `SRC->DST id I start PS size BYTES`")));
    };
    if src == dst || src >= hosts || dst >= hosts {
        return Err((pair, format!("`{pair}`; allowed: two different hosts below {hosts}")));
    }
    let (mut start_ps, mut bytes) = (None, None);
    for pair in words[1..].chunks(2) {
        let value = pair.get(1).and_then(|value| value.parse::<u64>().ok());
        match (pair[0], value) {
            ("id", Some(_)) => {}
            ("start", Some(value)) => start_ps = Some(value),
            ("size", Some(value)) if value > 0 => bytes = Some(value),
            ("id" | "start" | "size", _) => return Err((pair[0], format!("`{}` takes a whole number", pair[0]))),
            ("trigger" | "send_done_trigger" | "recv_done_trigger", _) => {
                return Err((pair[0], "triggers are not supported; allowed: id, start, size".into()));
            }
            (word, _) => return Err((word, format!("unknown word `{word}`; allowed: id, start, size"))),
        }
    }
    let start_ps = start_ps.ok_or_else(|| (pair, "the flow has no `start`".to_string()))?;
    let bytes = bytes.ok_or_else(|| (pair, "the flow has no `size`".to_string()))?;
    Ok(Flow { flow: number, src, dst, bytes, start_ps })
}
