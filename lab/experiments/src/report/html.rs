//! HTML of pages, cards and tables.

use super::data;

const STYLE: &str = concat!(include_str!("vendor/uplot/uPlot.min.css"), include_str!("assets/report.css"));

const LIBRARY: &str =
    concat!("/*!\n", include_str!("vendor/uplot/LICENSE"), "*/\n", include_str!("vendor/uplot/uPlot.iife.min.js"));

/// The page's scripts, in the order of their dependencies.
const SCRIPTS: [&str; 13] = [
    LIBRARY,
    include_str!("assets/base.js"),
    include_str!("assets/save.js"),
    include_str!("assets/lines.js"),
    include_str!("assets/heatmap.js"),
    include_str!("assets/bars.js"),
    include_str!("assets/topology.js"),
    include_str!("assets/evs.js"),
    include_str!("assets/run.js"),
    include_str!("assets/compare.js"),
    include_str!("assets/overview.js"),
    include_str!("assets/figure.js"),
    include_str!("assets/start.js"),
];

/// Prevents fetching, regardless of names in the data.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Returns a page without scripts; `body` is HTML, `title` is text.
pub(super) fn page(title: &str, body: &str) -> String {
    whole(title, body, "")
}

pub(super) fn page_with(title: &str, body: &str, data: &impl serde::Serialize) -> String {
    let json = format!("<script type=\"application/json\" id=\"data\">{}</script>\n", data::text(data));
    let scripts: String = SCRIPTS.iter().map(|script| format!("<script>\n{script}</script>\n")).collect();
    whole(title, body, &(json + &scripts))
}

fn whole(title: &str, body: &str, scripts: &str) -> String {
    let title = escape(title);
    let head = format!(
        "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n<title>{title}</title>\n<style>{STYLE}</style>"
    );
    format!("<!doctype html>\n<html lang=\"en\">\n<head>\n{head}\n</head>\n<body>\n{body}{scripts}</body>\n</html>\n")
}

pub(super) const WITHOUT_SCRIPTS: &str =
    "<noscript><p class=\"soft\">The plots need JavaScript; the figures and tables below do not.</p></noscript>\n";

/// Returns a paragraph of text in a class.
pub(super) fn paragraph(class: &str, text: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape(text))
}

/// Returns a note about the rows beyond a limit, which `file` has too.
pub(super) fn more(rows: usize, file: &str) -> String {
    if rows > 0 { paragraph("soft", &format!("{rows} more in {file}")) } else { String::new() }
}

/// Returns the cards of the plots that have data; `about` gives the title and a remark of each.
pub(super) fn plots<'a>(
    all: impl IntoIterator<Item = (&'static str, bool)>,
    about: impl Fn(&str) -> (&'a str, &'a str),
) -> String {
    let card = |(id, has_data): (_, bool)| has_data.then(|| plot(id, about(id).0, about(id).1));
    all.into_iter().filter_map(card).collect()
}

/// Returns a hidden card that the script fills with plot `id`.
pub(super) fn plot(id: &str, title: &str, remark: &str) -> String {
    let remark = if remark.is_empty() { String::new() } else { paragraph("soft", remark) };
    format!(
        "<section class=\"plot\" id=\"{id}\" hidden=\"\">\n<h2>{}</h2>\n{remark}<div class=\"body\"></div>\n</section>\n",
        escape(title)
    )
}

pub(super) fn section(title: &str, inner: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n<div class=\"scroll\">{inner}</div></section>\n", escape(title))
}

pub(super) fn figures(figures: &[(&str, String)]) -> String {
    const LONG: usize = 18;
    let item = |(name, value): &(&str, String)| {
        let class = if value.len() > LONG { " class=\"wide\"" } else { "" };
        format!("<div{class}><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value))
    };
    format!("<dl class=\"figures\">\n{}</dl>\n", figures.iter().map(item).collect::<String>())
}

/// A row of a [`table`]; cells are HTML.
pub(super) struct Row {
    pub cells: Vec<String>,
    /// Whether it begins a new group of rows.
    pub first: bool,
}

impl From<Vec<String>> for Row {
    fn from(cells: Vec<String>) -> Self {
        Self { cells, first: false }
    }
}

/// Returns a table with the first `words` columns aligned as text; headings are text, cells HTML.
pub(super) fn table<R: Into<Row>>(
    heads: &[impl AsRef<str>],
    words: usize,
    rows: impl IntoIterator<Item = R>,
) -> String {
    let class = |column: usize| if column < words { " class=\"w\"" } else { "" };
    let head = |(c, head): (usize, _)| format!("<th{}>{}</th>", class(c), escape(AsRef::as_ref(head)));
    let head: String = heads.iter().enumerate().map(head).collect();
    let body = |row: R| {
        let Row { cells, first } = row.into();
        let cells: String = cells.iter().enumerate().map(|(c, cell)| format!("<td{}>{cell}</td>", class(c))).collect();
        format!("<tr{}>{cells}</tr>\n", if first { " class=\"first\"" } else { "" })
    };
    let body: String = rows.into_iter().map(body).collect();
    format!("<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n")
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
