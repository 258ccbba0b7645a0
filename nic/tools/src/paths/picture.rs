//! The picture: hops from left to right, lines as thick as many values take them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use super::analyse::{Analysis, State};
use super::findings::{Finding, Kind};

/// How values fare on a line: the best of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Well,
    Slow,
    Lost,
}

/// Somebody at a hop, or nobody who says so; past the last, what is lost.
type Node = (usize, Option<IpAddr>, bool);

const COLUMN: f64 = 190.0;
const ROW: f64 = 64.0;
const TOP: f64 = 64.0;
/// The thickest line, that of all values.
const THICK: f64 = 28.0;

/// Draws it.
pub fn draw(analysis: &Analysis, findings: &[Finding], from: IpAddr, title: &str) -> String {
    let (nodes, lines) = graph(analysis, findings, from);
    let place = places(&nodes);
    let columns = nodes.keys().map(|(hop, ..)| hop + 1).max().unwrap_or(1);
    let rows = place.values().map(|(_, y)| *y).fold(TOP, f64::max);
    let (width, height) = (columns as f64 * COLUMN + 20.0, rows + 84.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n{STYLE}\
         <rect width=\"100%\" height=\"100%\" class=\"ground\"/>\n<text x=\"14\" y=\"22\" class=\"head\">{title}</text>\n"
    );
    let all = analysis.values.len().max(1) as f64;
    for ((a, b), (count, fate)) in &lines {
        let ((x, y), (to_x, to_y), half) = (place[a], place[b], COLUMN / 2.0);
        let (thick, class) = (THICK * *count as f64 / all, ["well", "slow", "lost"][*fate as usize]);
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" stroke-width=\"{:.1}\" d=\"M{x} {y}C{} {y} {} {to_y} {to_x} {to_y}\"><title>{count} values</title></path>",
            thick.max(1.0),
            x + half,
            to_x - half
        );
    }
    for (node, count) in &nodes {
        let ((x, y), (hop, address, is_lost)) = (place[node], node);
        let name = match (address, is_lost) {
            (Some(address), _) => address.to_string(),
            (None, true) => "lost".into(),
            (None, false) => "no answer".into(),
        };
        let what = if *hop == 0 { "this machine".into() } else { format!("{count} values") };
        let _ = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\"/>\n<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>\n\
             <text x=\"{x}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"small\">{what}</text>",
            y - 18.0,
            y + 26.0
        );
    }
    let _ = writeln!(svg, "{}</svg>", legend(height - 14.0));
    svg
}

/// Colours that are told apart on light and dark ground, and by who sees no red or green.
const STYLE: &str = "<style>\
    .ground{fill:#fff}text{fill:#222;paint-order:stroke;stroke:#fff;stroke-width:3px}.head{font-size:14px;font-weight:bold}\
    .small{font-size:10px;fill:#666}circle{fill:#222}path{fill:none;stroke-opacity:.75}\
    .well{stroke:#3b7dd8}.slow{stroke:#e09f1f}.lost{stroke:#c8322b;stroke-dasharray:6 4}\
    @media(prefers-color-scheme:dark){.ground{fill:#16181c}text{fill:#e6e6e6;stroke:#16181c}.small{fill:#a0a0a0}circle{fill:#e6e6e6}}\
    </style>\n";

fn legend(y: f64) -> String {
    let entry = |(number, (class, text)): (usize, (&str, &str))| {
        let x = 14.0 + 190.0 * number as f64;
        let line = format!("<path class=\"{class}\" stroke-width=\"5\" d=\"M{x} {}h26\"/>", y - 4.0);
        format!("{line}<text x=\"{}\" y=\"{y}\" class=\"small\">{text}</text>\n", x + 34.0)
    };
    let entries = [("well", "values that get through"), ("slow", "slow or lossy"), ("lost", "lost")];
    entries.into_iter().enumerate().map(entry).collect()
}

/// Who is there with how many values, and lines between them.
#[expect(clippy::type_complexity, reason = "two tables, taken apart at once")]
fn graph(
    analysis: &Analysis,
    findings: &[Finding],
    from: IpAddr,
) -> (BTreeMap<Node, usize>, BTreeMap<(Node, Node), (usize, Fate)>) {
    let (mut nodes, mut lines) = (BTreeMap::new(), BTreeMap::new());
    let of = |kinds: &[Kind], port| findings.iter().any(|one| kinds.contains(&one.kind) && one.ports.contains(&port));
    for value in &analysis.values {
        let fate = match value.state {
            State::Lost | State::Refused => Fate::Lost,
            _ if of(&[Kind::Slow, Kind::Lossy], value.port) => Fate::Slow,
            _ => Fate::Well,
        };
        let mut way: Vec<Node> = vec![(0, Some(from), false)];
        // Of a value with a hop that did not answer its path tells more.
        let hops = analysis.paths.get(value.path).map_or(&value.hops, |path| &path.hops);
        way.extend(hops.iter().enumerate().map(|(hop, address)| (hop + 1, *address, false)));
        if fate == Fate::Lost {
            way.push((way.len(), None, true));
        }
        for node in &way {
            *nodes.entry(*node).or_insert(0) += 1;
        }
        for pair in way.windows(2) {
            let here = match (fate, pair[1].2) {
                (Fate::Lost, false) => Fate::Well,
                _ => fate,
            };
            let line = lines.entry((pair[0], pair[1])).or_insert((0, here));
            *line = (line.0 + 1, line.1.min(here));
        }
    }
    (nodes, lines)
}

/// Where each is: a column for each hop, in the middle of the height.
fn places(nodes: &BTreeMap<Node, usize>) -> BTreeMap<Node, (f64, f64)> {
    let rows = |column: usize| nodes.keys().filter(|(hop, ..)| *hop == column).count();
    let most = nodes.keys().map(|(hop, ..)| rows(*hop)).max().unwrap_or(0) as f64;
    let mut seen: BTreeMap<usize, f64> = BTreeMap::new();
    let place = |node: &Node| {
        let row = seen.entry(node.0).or_insert(0.0);
        let y = TOP + ROW * (*row + (most - rows(node.0) as f64) / 2.0);
        *row += 1.0;
        (*node, (COLUMN * (node.0 as f64 + 0.5) + 10.0, y))
    };
    nodes.keys().map(place).collect()
}
