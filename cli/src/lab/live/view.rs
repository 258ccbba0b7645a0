//! Draws the live view: hosts on the left, links on the right, goodput above, keys below.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell, Paragraph, RenderDirection, Row, Sparkline, Table, TableState};
use spray_core::path::BalancerKind;
use spray_fabric::live::LinkNow;

use super::model::{Model, state};

/// What is known beside the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The balancer of flows that begin now.
    pub new_flows: BalancerKind,
    /// How fast scenario time goes, and whether it is paused.
    pub pace: String,
    /// Whether the pace can be changed.
    pub has_pace: bool,
}

/// Columns from which hosts and links stand side by side.
const WIDE: u16 = 110;
/// Columns of the table of hosts.
const HOSTS: u16 = 46;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &Model, status: &Status) {
    let rows = [Constraint::Length(2), Constraint::Length(5), Constraint::Min(6), Constraint::Length(2)];
    let [head, chart, tables, keys] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(Paragraph::new(title(model, status)), head);
    goodput(frame, chart, model);
    let [hosts, links] = if frame.area().width >= WIDE {
        Layout::horizontal([Constraint::Length(HOSTS), Constraint::Min(50)]).areas(tables)
    } else {
        let most = (model.hosts.len() as u16 + 3).min(tables.height / 2);
        Layout::vertical([Constraint::Length(most), Constraint::Min(4)]).areas(tables)
    };
    draw_hosts(frame, hosts, model);
    draw_links(frame, links, model);
    frame.render_widget(Paragraph::new(help(model, status)), keys);
}

fn title<'a>(model: &'a Model, status: &'a Status) -> Vec<Line<'a>> {
    let us = model.now.now_ps as f64 / 1e6;
    let frozen: u32 = model.now.hosts.iter().map(|host| host.frozen).sum();
    let mut now = vec![
        Span::from(format!("{us:.1} us  ")).bold(),
        Span::from(format!("{} of {} flows arrived  ", model.now.arrived, model.messages)),
        Span::from(format!("{}  ", status.pace)),
        Span::from(format!("new flows: {}  ", status.new_flows)).magenta(),
    ];
    if frozen > 0 {
        now.push(Span::from(format!("{frozen} connections frozen")).cyan().bold());
    }
    vec![Line::from(model.title.as_str()).bold(), Line::from(now)]
}

fn goodput(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let most = model.goodput.iter().copied().max().unwrap_or(0);
    let now = model.goodput.back().copied().unwrap_or(0);
    let title = format!(" goodput {} Gb/s, at most {} ", gbps(now as f64), gbps(most as f64));
    let newest_first = model.goodput.iter().rev().copied().collect::<Vec<u64>>();
    let line = Sparkline::default().data(newest_first).max(most.max(1)).direction(RenderDirection::RightToLeft);
    frame.render_widget(line.style(Color::Green).block(Block::bordered().title(title)), area);
}

fn draw_hosts(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let row = |host: usize| {
        let now = model.host(host);
        let frozen = right(number(now.frozen.into())).style(Style::new().fg(Color::Cyan));
        Row::new([
            Cell::from(model.hosts[host].as_str()),
            right(gbps(model.goodput_bps(host))),
            right(number(now.sending.into())),
            frozen,
            right(number(now.retransmits)),
        ])
    };
    let widths = [
        Constraint::Min(6),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(8),
    ];
    let table = Table::new((0..model.hosts.len()).map(row), widths)
        .header(header(&["host", "Gb/s in", "sending", "frozen", "resent"]))
        .block(Block::bordered().title(" hosts "));
    frame.render_widget(table, area);
}

fn draw_links(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let rows = model.links.iter().map(|row| {
        let LinkNow { waiting_bytes, counters, state: now, .. } = model.link(row);
        let bps = model.link_bps(row);
        let drops = right(number(counters.drops())).style(Style::new().fg(Color::Red));
        Row::new([
            Cell::from(row.name.as_str()),
            right(gbps(bps)),
            right(format!("{:.0} %", 100.0 * bps / row.rate_bps.max(1) as f64)),
            right(format!("{:.1}", waiting_bytes as f64 / 1e3)),
            right(number(counters.marks)),
            drops,
            Cell::from(state(&now)).style(Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)),
        ])
    });
    let widths = [
        Constraint::Min(16),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(14),
    ];
    let table = Table::new(rows, widths)
        .header(header(&["link", "Gb/s", "load", "queue kB", "marked", "dropped", "state"]))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(" links "));
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(model.selected));
}

fn header(names: &[&'static str]) -> Row<'static> {
    let cell = |(column, name): (usize, &&'static str)| {
        let words = matches!((column, *name), (0, _) | (_, "state"));
        Cell::from(Text::from(*name).alignment(if words { Alignment::Left } else { Alignment::Right }))
    };
    Row::new(names.iter().enumerate().map(cell)).style(Style::new().add_modifier(Modifier::UNDERLINED))
}

fn help<'a>(model: &'a Model, status: &Status) -> Vec<Line<'a>> {
    let pace = if status.has_pace { "  space pause  . step  +/- speed" } else { "" };
    let keys = if model.now.over {
        "The run is over. Any key ends the view.".into()
    } else {
        format!("up/down link  f fail  s slow  l lose  h heal  b/B balancer{pace}  q end the run")
    };
    vec![Line::from(model.note.as_str()).yellow(), Line::from(keys)]
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Text::from(text).alignment(Alignment::Right))
}

/// Nothing in place of 0, so that what is not 0 stands out.
fn number(value: u64) -> String {
    if value == 0 { String::new() } else { value.to_string() }
}

fn gbps(bps: f64) -> String {
    format!("{:.1}", bps / 1e9)
}
