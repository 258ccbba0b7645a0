//! `.cm` connection matrices.
//!
//! `Nodes N`, `Connections M`, optionally `Triggers T`; then a line `SRC->DST id I start PS size
//! BYTES` per flow, with `trigger T` in place of `start`, and `send_done_trigger T` or
//! `recv_done_trigger T` to signal trigger T at its end; then `trigger id T oneshot`, `multishot`
//! or `barrier count N` per trigger. Times are ps, `#` starts a comment; case is ignored.

mod line;

use std::collections::HashMap;

use self::line::{Line, Word, words};
use super::{Flow, FlowTriggers, Triggers};
use spray_fabric::FileError;
use spray_fabric::limits::{MAX_FLOWS, MAX_MESSAGE_BYTES, MAX_TIME_PS};
use spray_fabric::{Trigger, TriggerKind};

/// A parsed matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The flows in the file's order; triggered ones start at 0.
    pub flows: Vec<Flow>,
    /// Triggers; `None` if no flow waits for another.
    pub triggers: Option<Triggers>,
    /// Warnings about ignored parts of the file.
    pub warnings: Vec<String>,
}

/// A number in the file, and its position.
#[derive(Debug, Clone, Copy)]
struct Reference {
    id: u64,
    line: usize,
    column: usize,
}

#[derive(Default)]
struct Reader {
    flows: Vec<Flow>,
    /// By flow, its line, and the triggers that start it and that it signals, sent and received.
    named: Vec<(usize, [Option<Reference>; 3])>,
    triggers: Vec<Trigger>,
    numbers: HashMap<u64, usize>,
    connections: Option<u64>,
    trigger_count: Option<u64>,
    priority: Option<usize>,
}

/// Parses the matrix in `text` for a fabric of `hosts` hosts.
///
/// # Errors
/// Returns the first invalid word, undefined trigger or flow that never starts.
pub fn parse_matrix(text: &str, hosts: usize) -> Result<Matrix, FileError> {
    let mut reader = Reader::default();
    for (index, full) in text.lines().enumerate() {
        let words = words(full);
        if !words.is_empty() {
            reader.line(&Line { number: index + 1, words }, hosts)?;
        }
    }
    reader.finish(text.lines().count().max(1))
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, hosts: usize) -> Result<(), FileError> {
        let first = line.words[0];
        match first.text.to_ascii_lowercase().as_str() {
            "nodes" => {
                if line.only_number()? > hosts as u64 {
                    let message = format!("`{}` is above the topology's; allowed: at most {hosts}", first.text);
                    return Err(line.error(first, message));
                }
            }
            "connections" => self.connections = Some(line.only_number()?),
            "triggers" => self.trigger_count = Some(line.only_number()?),
            "trigger" => self.trigger(line)?,
            _ => self.flow(line, hosts)?,
        }
        Ok(())
    }

    fn trigger(&mut self, line: &Line<'_>) -> Result<(), FileError> {
        const ALLOWED: &str = "allowed: `trigger id T oneshot`, `multishot` or `barrier count N`";
        let lower: Vec<String> = line.words.iter().map(|word| word.text.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let (id, kind) = match lower[..] {
            ["trigger", "id", _, "oneshot"] => (line.number(2)?, TriggerKind::Oneshot),
            ["trigger", "id", _, "multishot"] => (line.number(2)?, TriggerKind::Multishot),
            ["trigger", "id", _, "barrier", "count", _] => {
                let count = line.number(5)?;
                let fits = u32::try_from(count).ok().filter(|count| *count > 0);
                let message = || format!("`count` is {count}; allowed: 1 to {}", u32::MAX);
                (line.number(2)?, TriggerKind::Barrier(fits.ok_or_else(|| line.error(line.words[5], message()))?))
            }
            _ => {
                let at = lower.iter().zip(["trigger", "id"]).take_while(|(given, name)| *given == name).count();
                let word = line.words.get(if at < 2 { at } else { 3 }).unwrap_or(&line.words[0]);
                return Err(line.error(*word, format!("no trigger can be read here; {ALLOWED}")));
            }
        };
        if self.numbers.insert(id, self.triggers.len()).is_some() {
            return Err(line.error(line.words[2], format!("trigger {id} is described twice; allowed: once")));
        }
        self.triggers.push(Trigger::new(kind));
        Ok(())
    }

    fn flow(&mut self, line: &Line<'_>, hosts: usize) -> Result<(), FileError> {
        const ALLOWED: &str = "id, start, trigger, size, send_done_trigger, recv_done_trigger, prio";
        let pair = line.words[0];
        let (src, dst) = ends(line, hosts)?;
        let (mut start, mut size) = (None, None);
        let [mut trigger, mut on_sent, mut on_received, mut id, mut priority] = [None; 5];
        for at in (1..line.words.len()).step_by(2) {
            let word = line.words[at];
            let slot = match word.text.to_ascii_lowercase().as_str() {
                "start" => &mut start,
                "size" => &mut size,
                "trigger" => &mut trigger,
                "send_done_trigger" => &mut on_sent,
                "recv_done_trigger" => &mut on_received,
                "id" => &mut id,
                "prio" | "priority" => {
                    self.priority.get_or_insert(line.number);
                    &mut priority
                }
                _ => return Err(line.error(word, format!("unknown word `{}`; allowed: {ALLOWED}", word.text))),
            };
            let reference = Reference { id: line.number(at + 1)?, line: line.number, column: word.column };
            if slot.replace(reference).is_some() {
                return Err(line.error(word, format!("`{}` is given twice; allowed: once", word.text)));
            }
        }
        let start_ps = match (start, trigger) {
            (Some(start), None) if start.id > MAX_TIME_PS => {
                let message = format!("`start` is {}; allowed: at most {MAX_TIME_PS} ps, an hour", start.id);
                return Err(FileError { line: start.line, column: start.column, message });
            }
            (Some(start), None) => start.id,
            (None, Some(_)) => 0,
            _ => return Err(line.error(pair, "the flow needs a start; allowed: one of `start` and `trigger`".into())),
        };
        let bytes = size.filter(|size| size.id > 0).ok_or_else(|| {
            line.error(pair, "the flow needs a size above 0; allowed: `size` and a number of bytes".into())
        })?;
        if bytes.id > MAX_MESSAGE_BYTES {
            let message = format!("`size` is {}; allowed: at most {MAX_MESSAGE_BYTES} bytes", bytes.id);
            return Err(FileError { line: bytes.line, column: bytes.column, message });
        }
        if self.flows.len() == MAX_FLOWS {
            return Err(line.error(pair, format!("one flow too many; allowed: at most {MAX_FLOWS}")));
        }
        self.flows.push(Flow { flow: self.flows.len() as u32, src, dst, bytes: bytes.id, start_ps, ..Flow::default() });
        self.named.push((line.number, [trigger, on_sent, on_received]));
        Ok(())
    }

    fn finish(self, last_line: usize) -> Result<Matrix, FileError> {
        let end = |message: String| FileError { line: last_line, column: 1, message };
        if self.flows.is_empty() {
            return Err(end("there are no flows; allowed: `SRC->DST id I start PS size BYTES`".into()));
        }
        let (connections, triggers) = (self.connections, self.trigger_count);
        for (name, given, found) in
            [("Connections", connections, self.flows.len()), ("Triggers", triggers, self.triggers.len())]
        {
            if let Some(given) = given.filter(|given| *given != found as u64) {
                return Err(end(format!("`{name}` says {given}, the file has {found}; allowed: the same")));
            }
        }
        let number = |reference: Option<Reference>| match reference {
            None => Ok(None),
            Some(Reference { id, line, column }) => {
                self.numbers.get(&id).map(|number| Some(*number)).ok_or_else(|| {
                    let message = format!("trigger {id} is not described; allowed: ids of `trigger id {id} ...` lines");
                    FileError { line, column, message }
                })
            }
        };
        let of_flow = self.named.iter().map(|(_, [start, sent, received])| {
            let [start, on_sent, on_received] = [number(*start)?, number(*sent)?, number(*received)?];
            Ok(FlowTriggers { start, on_sent, on_received })
        });
        let of_flow = of_flow.collect::<Result<Vec<_>, FileError>>()?;
        let triggers = Triggers { list: self.triggers, of_flow };
        if let Some(flow) = triggers.never_started() {
            let message = "the flow never starts: too few flows signal its trigger; allowed: one that starts";
            return Err(FileError { line: self.named[flow].0, column: 1, message: message.into() });
        }
        let warning = |line| format!("line {line}: priorities are ignored, here and wherever else they are given");
        Ok(Matrix {
            flows: self.flows,
            triggers: (!triggers.list.is_empty()).then_some(triggers),
            warnings: self.priority.map(warning).into_iter().collect(),
        })
    }
}

fn ends(line: &Line<'_>, hosts: usize) -> Result<(usize, usize), FileError> {
    let pair: Word<'_> = line.words[0];
    let ends = pair.text.split_once("->").and_then(|(src, dst)| Some((src.parse().ok()?, dst.parse().ok()?)));
    let Some((src, dst)) = ends else {
        let message = format!("`{}` is no flow; allowed: `SRC->DST id I start PS size BYTES`", pair.text);
        return Err(line.error(pair, message));
    };
    if src == dst || src >= hosts || dst >= hosts {
        return Err(line.error(pair, format!("`{}`; allowed: two different hosts below {hosts}", pair.text)));
    }
    Ok((src, dst))
}
