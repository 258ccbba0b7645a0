//! SVG plots. They are drawn in black. The page's CSS replaces black by its text colour, for light and dark themes.

use std::ops::Range;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Colours of series. Most readers, colour-blind ones included, can tell them apart on white and on black.
const PALETTE: [RGBColor; 8] = [
    RGBColor(0x3b, 0x82, 0xc4),
    RGBColor(0xe0, 0x7b, 0x1f),
    RGBColor(0x2f, 0xa0, 0x6a),
    RGBColor(0xc9, 0x4f, 0x7c),
    RGBColor(0x8a, 0x6f, 0xd1),
    RGBColor(0x9b, 0x8a, 0x1e),
    RGBColor(0x2a, 0xa5, 0xb5),
    RGBColor(0xb0, 0x5a, 0x3c),
];
/// Width of one of two plots side by side, in the unit of the font's size.
pub(super) const HALF: u32 = 540;
/// Height of a plot of bars.
const HEIGHT: u32 = 260;
/// Plotters divides by 1.24 when it writes the size.
const FONT: (&str, f64) = ("sans-serif", 16.0);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// One line of a [`lines`] plot.
#[derive(Default)]
pub(super) struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// The outline of the band around it; empty without one.
    pub band: Vec<(f64, f64)>,
}

/// The axes' labels and limits.
pub(super) struct Axes<'a> {
    pub x: &'a str,
    pub y: &'a str,
    /// Least height of the y axis, so that a flat line does not fill the plot.
    pub y_at_least: f64,
}

/// One group of bars, and one bar per name of the plot in it.
pub(super) struct Group {
    pub label: String,
    pub values: Vec<Bar>,
}

/// The height of a bar, and the interval around it.
#[derive(Clone, Copy, Default)]
pub(super) struct Bar {
    pub value: f64,
    pub interval: Option<[f64; 2]>,
    /// Whether its value has a `*`.
    pub is_marked: bool,
}

/// The colour of series number `index` for the legend.
pub(super) fn colour(index: usize) -> String {
    let RGBColor(r, g, b) = PALETTE[index % PALETTE.len()];
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Lines over a common x axis.
pub(super) fn lines(axes: &Axes<'_>, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter().chain(&line.band).copied());
    let x = span(points().map(|p| p.0).chain([0.0]));
    let y = 0.0..headroom(points().map(|p| p.1), axes.y_at_least);
    svg((HALF, 280), |area| {
        let mut chart = chart(area, [24, 44, 62], x.clone(), y.clone())?;
        let number = |v: &f64| short(*v);
        let mut mesh = mesh(&mut chart);
        mesh.x_desc(axes.x).y_desc(axes.y).x_labels(HALF as usize / 80).y_labels(6);
        mesh.x_label_formatter(&number).y_label_formatter(&number).draw()?;
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.band.is_empty()) {
            let colour = PALETTE[index % PALETTE.len()].mix(0.2).filled();
            chart.draw_series([Polygon::new(line.band.clone(), colour)])?;
        }
        for (index, line) in lines.iter().enumerate() {
            let colour = PALETTE[index % PALETTE.len()].stroke_width(2);
            chart.draw_series(LineSeries::new(line.points.iter().copied(), colour))?;
        }
        Ok(())
    })
}

/// Bars side by side in labelled groups, each with its value on top; `bars` is how many a group has.
pub(super) fn bars(y_name: &str, bars: usize, groups: &[Group]) -> String {
    let highest = headroom(groups.iter().flat_map(|g| g.values.iter().map(|bar| top(bar.value, bar.interval))), 1.0);
    svg((HALF, HEIGHT), |area| {
        let mut chart = chart(area, [10, 32, 62], 0.0..groups.len() as f64, 0.0..highest * 1.06)?;
        let mut mesh = mesh(&mut chart);
        mesh.disable_x_mesh().x_labels(0).y_labels(6).y_desc(y_name).y_label_formatter(&|v| short(*v)).draw()?;
        if groups.iter().flat_map(|group| &group.values).any(|bar| bar.is_marked) {
            let style = TextStyle::from((FONT.0, 14.5)).pos(Pos::new(HPos::Right, VPos::Top));
            area.draw_text("* not all flows completed", &style, (HALF as i32 - 10, 2))?;
        }
        for (at, group) in groups.iter().enumerate() {
            for (index, Bar { value, interval, is_marked }) in group.values.iter().enumerate() {
                let (left, right) = bar_span(at, index, bars);
                let colour = PALETTE[index % PALETTE.len()].filled();
                chart.draw_series([Rectangle::new([(left, 0.0), (right, *value)], colour)])?;
                let middle = f64::midpoint(left, right);
                if let Some([low, _]) = interval {
                    let ends = [(middle, low.max(0.0)), (middle, top(*value, *interval))];
                    chart.draw_series([PathElement::new(ends, BLACK.mix(0.7).stroke_width(2))])?;
                }
                let label = chart.backend_coord(&(middle, top(*value, *interval)));
                let text = short(*value) + if *is_marked { "*" } else { "" };
                area.draw_text(&text, &centred(14.5), (label.0, label.1 - 9))?;
            }
            let below = chart.backend_coord(&(at as f64 + 0.5, 0.0));
            area.draw_text(&group.label, &centred(FONT.1), (below.0, below.1 + 18))?;
        }
        Ok(())
    })
}

/// A bar of [`ranked`]: none where a run never ended.
pub(super) struct Ranked {
    pub name: String,
    pub value: Option<f64>,
    pub interval: Option<[f64; 2]>,
}

/// Bars below each other, with the names at the left and the values behind the bars.
pub(super) fn ranked(unit: &str, bars: &[Ranked]) -> String {
    const LEFT: u32 = 230;
    let longest = bars.iter().filter_map(|bar| Some(top(bar.value?, bar.interval)));
    let x = 0.0..headroom(longest, f64::MIN_POSITIVE) * 1.15;
    svg((HALF, 58 + 26 * bars.len() as u32), |area| {
        let mut chart = chart(area, [16, 40, LEFT], x.clone(), 0.0..bars.len() as f64)?;
        let mut mesh = mesh(&mut chart);
        mesh.disable_y_mesh().x_desc(unit).x_labels(5).y_labels(0).x_label_formatter(&|v| short(*v)).draw()?;
        for (index, bar) in bars.iter().enumerate() {
            let (colour, y) = (PALETTE[0].filled(), bars.len() as f64 - index as f64 - 0.5);
            let left = chart.backend_coord(&(0.0, y));
            let beside = |side, x| (TextStyle::from((FONT.0, 14.5)).pos(Pos::new(side, VPos::Center)), (x, left.1));
            let (style, at) = beside(HPos::Right, left.0 - 8);
            area.draw_text(&bar.name, &style, at)?;
            let Some(value) = bar.value else {
                let (style, at) = beside(HPos::Left, left.0 + 8);
                area.draw_text("never ends", &style, at)?;
                continue;
            };
            chart.draw_series([Rectangle::new([(0.0, y - 0.35), (value, y + 0.35)], colour)])?;
            if let Some([low, _]) = bar.interval.filter(|[low, high]| low < high) {
                let ends = [(low.max(0.0), y), (top(value, bar.interval), y)];
                chart.draw_series([PathElement::new(ends, BLACK.mix(0.7).stroke_width(2))])?;
            }
            let (style, at) = beside(HPos::Left, chart.backend_coord(&(top(value, bar.interval), y)).0 + 8);
            area.draw_text(&short(value), &style, at)?;
        }
        Ok(())
    })
}

/// Where a bar ends with its interval, which is drawn to three times the value: one of few runs may be far longer.
fn top(value: f64, interval: Option<[f64; 2]>) -> f64 {
    interval.map_or(value, |[_, high]| high.min(3.0 * value).max(value))
}

/// A plot of [`bars`] as a separate file: black on white, with the names of the bars above it.
pub(super) fn picture(names: &[String], bars: &str) -> String {
    let entry = |(index, name): (usize, &String)| {
        let (x, colour) = (70 + 90 * index, colour(index));
        let text = format!("<text x=\"{}\" y=\"27\" font-family=\"sans-serif\" font-size=\"14\">", x + 20);
        let name = super::html::escape(name);
        format!("<rect x=\"{x}\" y=\"15\" width=\"14\" height=\"14\" fill=\"{colour}\"/>{text}{name}</text>")
    };
    let legend: String = names.iter().enumerate().map(entry).collect();
    let bars = bars.replacen("<svg ", &format!("<svg y=\"36\" width=\"{HALF}\" height=\"{HEIGHT}\" "), 1);
    let (width, height) = (HALF.max(70 + 90 * names.len() as u32), HEIGHT + 36);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>{legend}{bars}</svg>\n"
    )
}

/// A chart with margins and room for labels: at the right, for those of the x axis, for those of the y axis.
fn chart<'a, 'b>(
    area: &'a Area<'b>,
    [right, below, left]: [u32; 3],
    x: Range<f64>,
    y: Range<f64>,
) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(area);
    chart.margin(10).margin_right(right).x_label_area_size(below).y_label_area_size(left);
    Ok(chart.build_cartesian_2d(x, y)?)
}

/// Axes and lines behind a chart in the page's style.
fn mesh<'a, 'b, 'c>(chart: &'c mut Chart<'a, 'b>) -> MeshStyle<'a, 'c, RangedCoordf64, RangedCoordf64, SVGBackend<'b>> {
    let mut mesh = chart.configure_mesh();
    mesh.label_style(FONT).axis_style(BLACK.mix(0.6)).bold_line_style(BLACK.mix(0.13)).light_line_style(TRANSPARENT);
    mesh
}

/// Draws a plot as part of a page, without the attributes that only a separate file needs. If it cannot be drawn, the page has
/// a sentence in its place.
fn svg((width, height): (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut out = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut out, (width, height)).into_drawing_area();
        draw(&area).and_then(|()| Ok(area.present()?))
    };
    if let Err(error) = drawn {
        return format!("<p>This plot could not be drawn: {}</p>", super::html::escape(&error.to_string()));
    }
    let size = format!("width=\"{width}\" height=\"{height}\" ");
    out.replacen(&size, "", 1).replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1)
}

fn centred(size: f64) -> TextStyle<'static> {
    TextStyle::from((FONT.0, size)).pos(Pos::new(HPos::Center, VPos::Center))
}

/// Where bar `index` of `bars` stands in group `at`. A group is 1 wide; a fifth of that is empty.
fn bar_span(at: usize, index: usize, bars: usize) -> (f64, f64) {
    let width = 0.8 / bars.max(1) as f64;
    let left = at as f64 + 0.1 + width * index as f64;
    (left + width * 0.06, left + width * 0.94)
}

/// The range from the least to the largest value. It is never empty and never infinite.
fn span(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let low = values.clone().filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min);
    let high = values.filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    if low < high {
        low..high
    } else if low.is_finite() {
        low..low + 1.0
    } else {
        0.0..1.0
    }
}

fn headroom(values: impl Iterator<Item = f64>, at_least: f64) -> f64 {
    values.filter(|v| v.is_finite()).fold(at_least, f64::max) * 1.05
}

/// A number in few characters: `0`, `0.25`, `31.4`, `1,204`, `3.2M`.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e7 => format!("{:.0}M", value / 1e6),
        v if v >= 1e6 => format!("{:.1}M", value / 1e6),
        v if v >= 1e4 => format!("{:.0}k", value / 1e3),
        v if v >= 100.0 || v.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
