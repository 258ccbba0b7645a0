//! The page around the plots.

use super::chart::colour;

const CSS: &str = "
:root{color-scheme:light dark;--ink:#1d2430;--soft:#5d6878;--page:#fbfbf9;--card:#fff;--edge:#dfe1e5;--good:#1c7c4a;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e5e8ee;--soft:#9aa4b2;--page:#14171c;--card:#1b2027;--edge:#313843;--good:#63c995;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem 1rem 4rem;max-width:1180px;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.55rem;margin:0}h2{font-size:1.08rem;margin:0 0 .4rem}p{margin:.3rem 0}a{color:inherit}
.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
section{background:var(--card);border:1px solid var(--edge);border-radius:10px;padding:1rem 1.2rem;margin-top:1rem;overflow-x:auto}
.two,.three{display:grid;gap:1rem;margin-top:1rem}.two section,.three section{margin-top:0}
.two{grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr))}
.three{grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr))}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.2rem,1fr));gap:.7rem 1.2rem;margin:0}
.figures div{display:flex;flex-direction:column-reverse}
.figures dt{color:var(--soft);font-size:.8rem}.figures dd{margin:0;font-size:1.12rem;font-variant-numeric:tabular-nums}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;padding:0;margin:0 0 .3rem;list-style:none;font-size:.85rem}
.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.45em}
svg{display:block;width:100%;height:auto}svg [fill=\"#000000\"]{fill:var(--ink)}svg [stroke=\"#000000\"]{stroke:var(--ink)}
table{border-collapse:collapse;width:100%;font-size:.84rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .5rem;text-align:right;border-bottom:1px solid var(--edge);white-space:nowrap}
th{color:var(--soft);font-weight:600}th.w,td.w{text-align:left}
div.wrap td{white-space:normal}
tr.first td{border-top:2px solid var(--edge)}
";

/// A whole page; `body` is HTML, `title` is text.
pub(super) fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    let head = format!(
        "<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>{CSS}</style>"
    );
    format!("<!doctype html>\n<html lang=\"en\">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n")
}

/// A titled card; `inner` is HTML.
pub(super) fn section(title: &str, inner: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{inner}</section>\n", escape(title))
}

/// A card with a plot, the names of its series and a remark below.
pub(super) fn figure(title: &str, names: &[String], plot: &str, remark: &str) -> String {
    let remark = if remark.is_empty() { String::new() } else { format!("<p class=\"soft\">{}</p>\n", escape(remark)) };
    section(title, &format!("{}{plot}{remark}", legend(names)))
}

fn legend(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let item = |(index, name): (usize, &String)| {
        format!("<li><i style=\"background:{}\"></i>{}</li>", colour(index), escape(name))
    };
    format!("<ul class=\"legend\">{}</ul>\n", names.iter().enumerate().map(item).collect::<String>())
}

/// Figures with their names, in a grid.
pub(super) fn figures(figures: &[(&str, String)]) -> String {
    let item =
        |(name, value): &(&str, String)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value));
    format!("<dl class=\"figures\">\n{}</dl>\n", figures.iter().map(item).collect::<String>())
}

/// A row of a [`table`]: cells are HTML.
pub(super) struct Row {
    pub cells: Vec<String>,
    /// Whether a new group of rows begins here.
    pub first: bool,
}

/// A table whose first `words` columns hold words; headings are text, cells HTML.
pub(super) fn table(heads: &[&str], words: usize, rows: &[Row]) -> String {
    let class = |column: usize| if column < words { " class=\"w\"" } else { "" };
    let head: String = heads.iter().enumerate().map(|(c, h)| format!("<th{}>{}</th>", class(c), escape(h))).collect();
    let body = |row: &Row| {
        let cells: String =
            row.cells.iter().enumerate().map(|(c, cell)| format!("<td{}>{cell}</td>", class(c))).collect();
        format!("<tr{}>{cells}</tr>\n", if row.first { " class=\"first\"" } else { "" })
    };
    let body: String = rows.iter().map(body).collect();
    format!("<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n")
}

/// Text as HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
