//! `.cm` connection matrices.
//!
//! `Nodes N`, `Connections M`, optionally `Triggers T`; then a line `SRC->DST id I start PS size
//! BYTES` per flow, with `trigger T` in place of `start`, and `send_done_trigger T` or
//! `recv_done_trigger T` to signal trigger T at its end; then `trigger id T oneshot`, `multishot`
//! or `barrier count N` per trigger. Flows with `msg`, alone or with a number, are messages of the
//! connection `id`, in the order of the lines. Times are ps, `#` starts a comment, words are
//! case-insensitive and, behind the first, in any order.

mod line;

use std::collections::HashMap;

use self::line::{Line, Reference, Word, words};
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

#[derive(Default)]
struct Reader {
    flows: Vec<Flow>,
    /// By flow, its line, and the triggers that start it and that it signals, sent and received.
    named: Vec<(usize, [Option<Reference>; 3])>,
    triggers: Vec<Trigger>,
    numbers: HashMap<u64, usize>,
    /// The latest flow of each connection with several messages, by its id.
    messages: HashMap<u64, u32>,
    nodes: Option<Reference>,
    connections: Option<Reference>,
    trigger_count: Option<Reference>,
    priority: Option<usize>,
    /// The first start with a fraction of a picosecond, and their number.
    fraction: Option<(Reference, usize)>,
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
                let nodes = line.count()?;
                if nodes.id > hosts as u64 {
                    let message = format!("`{}` is above the topology's; allowed: at most {hosts}", first.text);
                    return Err(line.error(first, message));
                }
                self.nodes = Some(nodes);
            }
            "connections" => self.connections = Some(line.count()?),
            "triggers" => self.trigger_count = Some(line.count()?),
            "failures" if line.only_number()? == 0 => {}
            "failures" | "failure" => {
                let message = "failures in matrices are not read; allowed: `[[link_event]]` or `[[failure]]` in the scenario, or a failure file";
                return Err(line.error(first, message.into()));
            }
            "trigger" => self.trigger(line)?,
            _ => self.flow(line, hosts)?,
        }
        Ok(())
    }

    fn trigger(&mut self, line: &Line<'_>) -> Result<(), FileError> {
        const ALLOWED: &str = "allowed: `trigger id T oneshot`, `multishot` or `barrier count N`";
        let (mut id, mut count, mut kind) = (None, None, None);
        let mut at = 1;
        while let Some(word) = line.words.get(at) {
            let name = word.text.to_ascii_lowercase();
            let is_first = match name.as_str() {
                "id" => id.replace((line.number(at + 1)?, line.words[at + 1])).is_none(),
                "count" => count.replace((line.number(at + 1)?, line.words[at + 1])).is_none(),
                "oneshot" | "multishot" | "barrier" => kind.replace((name.clone(), *word)).is_none(),
                _ => return Err(line.error(*word, format!("`{}` is no word of a trigger; {ALLOWED}", word.text))),
            };
            if !is_first {
                return Err(line.error(*word, format!("`{}` is one too many; {ALLOWED}", word.text)));
            }
            at += if matches!(name.as_str(), "id" | "count") { 2 } else { 1 };
        }
        let (Some((id, of_id)), Some((name, of_kind))) = (id, kind) else {
            return Err(line.error(line.words[0], format!("the trigger has no id or no kind; {ALLOWED}")));
        };
        let kind = match (name.as_str(), count) {
            ("barrier", Some((count, word))) => {
                let fits = u32::try_from(count).ok().filter(|count| *count > 0);
                let message = || format!("`count` is {count}; allowed: 1 to {}", u32::MAX);
                TriggerKind::Barrier(fits.ok_or_else(|| line.error(word, message()))?)
            }
            ("barrier", None) => return Err(line.error(of_kind, format!("the barrier has no `count`; {ALLOWED}"))),
            (_, Some((_, word))) => return Err(line.error(word, format!("only barriers have a `count`; {ALLOWED}"))),
            ("oneshot", None) => TriggerKind::Oneshot,
            _ => TriggerKind::Multishot,
        };
        if self.numbers.insert(id, self.triggers.len()).is_some() {
            return Err(line.error(of_id, format!("trigger {id} is described twice; allowed: once")));
        }
        self.triggers.push(Trigger::new(kind));
        Ok(())
    }

    fn flow(&mut self, line: &Line<'_>, hosts: usize) -> Result<(), FileError> {
        const ALLOWED: &str = "id, msg, start, trigger, size, send_done_trigger, recv_done_trigger, prio";
        let pair = line.words[0];
        let (src, dst) = ends(line, hosts)?;
        let (mut start, mut size) = (None, None);
        let [mut trigger, mut on_sent, mut on_received, mut id, mut msg, mut priority] = [None; 6];
        let mut at = 1;
        while let Some(word) = line.words.get(at).copied() {
            let slot = match word.text.to_ascii_lowercase().as_str() {
                "start" => &mut start,
                "size" => &mut size,
                "trigger" => &mut trigger,
                "send_done_trigger" => &mut on_sent,
                "recv_done_trigger" => &mut on_received,
                "id" => &mut id,
                "msg" => &mut msg,
                "prio" | "priority" => {
                    self.priority.get_or_insert(line.number);
                    &mut priority
                }
                _ => return Err(line.error(word, format!("unknown word `{}`; allowed: {ALLOWED}", word.text))),
            };
            let is_number = |word: &Word<'_>| word.text.starts_with(|c: char| c.is_ascii_digit());
            let has_value = !word.text.eq_ignore_ascii_case("msg") || line.words.get(at + 1).is_some_and(is_number);
            let (id, has_fraction) = if has_value { line.decimal(at + 1)? } else { (0, false) };
            let reference = Reference { id, line: line.number, column: word.column };
            if has_fraction && word.text.eq_ignore_ascii_case("start") {
                self.fraction.get_or_insert((reference, 0)).1 += 1;
            } else if has_fraction {
                line.number(at + 1)?;
            }
            if slot.replace(reference).is_some() {
                return Err(line.error(word, format!("`{}` is given twice; allowed: once", word.text)));
            }
            at += 1 + usize::from(has_value);
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
        let bytes = size
            .ok_or_else(|| line.error(pair, "the flow needs a size; allowed: `size` and a number of bytes".into()))?;
        if bytes.id == 0 {
            let message = "`size 0` is an endless flow; allowed: a size above 0, and `time_limit_us` in the scenario";
            return Err(FileError { line: bytes.line, column: bytes.column, message: message.into() });
        }
        if bytes.id > MAX_MESSAGE_BYTES {
            let message = format!("`size` is {}; allowed: at most {MAX_MESSAGE_BYTES} bytes", bytes.id);
            return Err(FileError { line: bytes.line, column: bytes.column, message });
        }
        if self.flows.len() == MAX_FLOWS {
            return Err(line.error(pair, format!("one flow too many; allowed: at most {MAX_FLOWS}")));
        }
        let flow = self.flows.len() as u32;
        let connection = match (msg, id) {
            (None, _) => None,
            (Some(_), Some(id)) => {
                let start_ps = if trigger.is_some() { u64::MAX } else { start_ps };
                self.message(line, id.id, &Flow { src, dst, start_ps, flow, ..Flow::default() })?
            }
            (Some(_), None) => {
                return Err(line.error(pair, "the message has no connection; allowed: `id` with `msg`".into()));
            }
        };
        self.flows.push(Flow { flow, src, dst, bytes: bytes.id, start_ps, connection, ..Flow::default() });
        self.named.push((line.number, [trigger, on_sent, on_received]));
        Ok(())
    }

    /// Adds a message to connection `id`. Returns the flow that opens it, unless it is this one.
    fn message(&mut self, line: &Line<'_>, id: u64, flow: &Flow) -> Result<Option<u32>, FileError> {
        let Some(before) = self.messages.insert(id, flow.flow) else { return Ok(None) };
        let before = &self.flows[before as usize];
        let message = if (before.src, before.dst) != (flow.src, flow.dst) {
            format!("connection {id} is from {} to {}; allowed: another id", before.src, before.dst)
        } else if flow.start_ps < before.start_ps {
            format!("the message starts before that above it in connection {id}; allowed: in order of start")
        } else {
            return Ok(Some(before.connection.unwrap_or(before.flow)));
        };
        Err(line.error(line.words[0], message))
    }

    fn finish(self, last_line: usize) -> Result<Matrix, FileError> {
        let end = |message: String| FileError { line: last_line, column: 1, message };
        if self.flows.is_empty() {
            return Err(end("there are no flows; allowed: `SRC->DST id I start PS size BYTES`".into()));
        }
        let mut warnings = Vec::new();
        let highest = self.flows.iter().map(|flow| flow.src.max(flow.dst)).max().unwrap_or_default();
        if let Some(Reference { id, line, .. }) = self.nodes.filter(|nodes| nodes.id <= highest as u64) {
            warnings.push(format!("line {line}: `Nodes` is {id}, but flows name host {highest}"));
        }
        for (name, stated, found) in
            [("Connections", self.connections, self.flows.len()), ("Triggers", self.trigger_count, self.triggers.len())]
        {
            if let Some(Reference { id, line, .. }) = stated.filter(|stated| stated.id != found as u64) {
                warnings.push(format!("line {line}: `{name}` is {id}, but the file has {found}, which are used"));
            }
        }
        if let Some((Reference { line, .. }, count)) = self.fraction {
            warnings.push(format!("line {line}: `start` has a fraction of a picosecond, ignored in {count} flows"));
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
        if let Some(line) = self.priority {
            warnings.push(format!("line {line}: priorities are ignored, here and wherever else they are given"));
        }
        Ok(Matrix { flows: self.flows, triggers: (!triggers.list.is_empty()).then_some(triggers), warnings })
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
