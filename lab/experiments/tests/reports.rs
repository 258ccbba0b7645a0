//! The pages of runs in a browser: no error, every plot drawn, and the numbers of the plots equal
//! to those of the tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use spray_core::path::BalancerKind::{self, Ecmp, Ops, Reps};
use spray_experiments::results::{
    Extras, FinishedRun, Record, Summary, folder_name, write_overview, write_run, write_sweep,
};
use spray_experiments::scenario::{Document, Scenario};
use spray_experiments::sim::Simulation;
use spray_test_support::{Folder, root, skip, text};

/// Clicks every control.
const EVERYTHING: &str = "
    const at = (element, type, x, y) => {
        const box = element.getBoundingClientRect();
        element.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX: box.left + box.width * x, clientY: box.top + box.height * y }));
    };
    for (const canvas of document.querySelectorAll('.body > div > canvas, .body > div > div > canvas')) {
        at(canvas, 'pointermove', 0.5, 0.3);
        at(canvas, 'pointerdown', 0.3, 0.1);
        at(canvas, 'pointerup', 0.6, 0.1);
        at(canvas, 'pointerdown', 0.5, 0.2);
        at(canvas, 'pointerup', 0.5, 0.2);
        for (const key of ['ArrowDown', 'ArrowRight', 'Enter', 'Escape']) canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        canvas.dispatchEvent(new Event('dblclick'));
    }
    for (const select of document.querySelectorAll('select')) {
        for (const option of select.options) { select.value = option.value; select.dispatchEvent(new Event('change')); await frames(); }
    }
    for (const slider of document.querySelectorAll('input')) { slider.value = 7; slider.dispatchEvent(new Event('input')); }
    for (const button of [...document.querySelectorAll('button')]) { button.click(); await frames(); }
    for (const place of document.querySelectorAll('.u-over, .line, .reach, .drawing g')) for (const type of ['pointermove', 'mousemove']) at(place, type, 0.5, 0.5);
    return document.querySelectorAll('button').length;";

#[test]
fn no_control_causes_an_error() {
    let Some(runs) = Runs::new() else { return };
    for (page, least) in [(runs.page(Reps, 2), 30), (runs.overview(), 12)] {
        let script = format!("const frames = () => new Promise((done) => setTimeout(done, 5)); {EVERYTHING}");
        let found = runs.open(&page, 900, &script).as_u64().unwrap();
        assert!(found >= least, "{found} buttons");
    }
}

/// Names of browsers that can run without a display.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const BALANCERS: [BalancerKind; 3] = [Ecmp, Ops, Reps];
const SEEDS: [u64; 2] = [1, 2];

/// A scenario in the simulator, with a run folder for each balancer and seed, and the page that
/// compares them.
struct Runs {
    browser: &'static str,
    folder: Folder,
    condition: String,
}

impl Runs {
    /// Runs the third condition of the demo.
    fn new() -> Option<Self> {
        Self::of("demo-silent-drop")
    }

    /// Returns `None` without a browser; the calling test then skips.
    fn of(scenario: &str) -> Option<Self> {
        let starts = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
        let Some(browser) = BROWSERS.iter().find(starts) else {
            skip("no chromium is installed");
            return None;
        };
        let folder = Folder::new();
        let file = root().join(format!("tests/scenarios/{scenario}.toml"));
        let document = Document::load(&file).unwrap();
        let scenario = Scenario::read(&document).unwrap();
        let simulation = Simulation::new(&scenario);
        let mut done = Vec::new();
        for balancer in BALANCERS {
            for seed in SEEDS {
                let run = simulation.run(balancer, seed, &[]).unwrap();
                let name = folder_name(&run.condition, &[], &run.switching, balancer.name(), seed);
                write_run(
                    &folder.path().join(&name),
                    &run,
                    "",
                    &Record::default(),
                    Extras { csv: true, ..Extras::default() },
                )
                .unwrap();
                done.push(FinishedRun::load(folder.path(), &name).unwrap());
            }
        }
        write_overview(folder.path(), &done).unwrap();
        let summaries: Vec<Summary> = done.into_iter().map(|run| run.summary).collect();
        write_sweep(folder.path(), &summaries).unwrap();
        Some(Self { browser, folder, condition: scenario.condition.replace(' ', "-") })
    }

    fn page(&self, balancer: BalancerKind, seed: u64) -> PathBuf {
        self.folder.path().join(format!("{}-{balancer}-seed{seed}/report.html", self.condition))
    }

    fn overview(&self) -> PathBuf {
        self.folder.path().join("report.html")
    }

    /// Opens the page in a window of this width, runs `script` once all is drawn, and returns its
    /// result.
    fn open(&self, page: &Path, width: u32, script: &str) -> Value {
        let html = std::fs::read_to_string(page).unwrap();
        let own = format!(
            "<script>setTimeout(async () => {{ const frames = () => new Promise((done) => setTimeout(done, 100));\n\
             const found = await (async () => {{ {script} }})();\n\
             const pre = document.createElement('pre'); pre.id = 'found'; pre.textContent = JSON.stringify(found);\n\
             document.body.append(pre); }}, 500);</script></body>"
        );
        let copy = page.with_extension("test.html");
        std::fs::write(&copy, html.replacen("</body>", &own, 1)).unwrap();
        // A browser without a display sometimes hangs.
        let ended = (0..3)
            .map(|_| self.dump(&copy, width))
            .find(|output| !output.status.code().is_some_and(|code| TIMED_OUT.contains(&code)));
        let output = ended.expect("a browser that ends");
        let (dom, log) = (text(&output.stdout), text(&output.stderr));
        let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(console.is_empty(), "{}: {console:#?}", page.display());
        let found = dom.split("<pre id=\"found\">").nth(1).unwrap_or_else(|| panic!("no result: {log}"));
        let json = found.split("</pre>").next().unwrap();
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
        serde_json::from_str(&json).unwrap()
    }

    /// Returns the browser's output for the page after its scripts have run, within two minutes.
    fn dump(&self, page: &Path, width: u32) -> Output {
        let profile = Folder::new();
        let mut browser = Command::new("timeout");
        browser.args(["--kill-after=5", "120", self.browser]);
        browser.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]);
        browser.args(["--virtual-time-budget=8000", "--dump-dom"]);
        browser.arg(format!("--window-size={width},900"));
        browser.arg(format!("--user-data-dir={}", profile.path().display()));
        // Downloads are saved below it.
        browser.env("HOME", profile.path());
        browser.arg(format!("file://{}", page.display())).output().unwrap()
    }
}

/// Exit codes of `timeout` after it has terminated or killed a command.
const TIMED_OUT: [i32; 2] = [124, 137];

/// Returns the rows of a table of a run, by column name. No field of these runs contains a comma.
fn table(page: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let csv = std::fs::read_to_string(page.with_file_name(format!("{name}.csv"))).unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_string));
    let names: Vec<String> = lines.next().unwrap().collect();
    lines.map(|fields| names.iter().cloned().zip(fields).collect()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or(f64::NAN)
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
}

#[track_caller]
fn assert_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-5 * expected.abs() + 1e-3, "{what}: {found} is not {expected}");
}

/// Returns the data of every plot of a page, and whether each card has a drawing.
const PLOTS: &str = "
    const plain = (plot) => Object.fromEntries(Object.entries(plot)
        .filter(([key]) => ['series', 'rows', 'groups', 'links', 'times', 'failed'].includes(key))
        .map(([key, get]) => [key, get()]));
    const inked = (canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size > 3;
    const drawn = (card) => [...card.querySelectorAll('canvas')].every(inked)
        && card.querySelectorAll('canvas, svg, .line').length > 0 && !card.hidden;
    const cards = () => Object.fromEntries([...document.querySelectorAll('section.plot')].map((card) => [card.id, drawn(card)]));
    const plots = () => Object.fromEntries(Object.entries(spray.plots).map(([id, plot]) => [id, plain(plot)]));";

#[test]
fn plots_of_a_run_have_the_numbers_of_its_tables() {
    let Some(runs) = Runs::new() else { return };
    let page = runs.page(Reps, 1);
    let found = runs.open(&page, 1200, &format!("{PLOTS} return {{ cards: cards(), plots: plots() }};"));
    let cards = found["cards"].as_object().unwrap();
    let mut ids: Vec<&String> = cards.keys().collect();
    ids.sort();
    assert_eq!(ids, ["drops", "events", "evs", "fct", "goodput", "ports", "sizes", "topology"]);
    assert!(cards.values().all(|drawn| *drawn == true), "{cards:?}");
    let plots = &found["plots"];

    let goodput = numbers(&plots["goodput"]["series"][0]["y"]);
    let rows = table(&page, "goodput");
    assert_eq!(goodput.len(), rows.len() - 1);
    goodput
        .iter()
        .zip(&rows[1..])
        .for_each(|(found, row)| assert_close(*found, number(row, "goodput_gbps"), "goodput"));

    let mut times: Vec<f64> = table(&page, "flows").iter().map(|row| number(row, "fct_us")).collect();
    times.sort_by(f64::total_cmp);
    let line = &plots["fct"]["series"][0];
    let reached = numbers(&line["x"]).into_iter().zip(numbers(&line["y"])).skip(1).step_by(2);
    for (rank, ((x, y), time)) in reached.zip(times).enumerate() {
        assert_close(x, time, "completion time");
        assert_close(y, (rank + 1) as f64 * 100.0 / 8.0, "share");
    }

    let queues = table(&page, "queues");
    for row in plots["ports"]["rows"].as_array().unwrap() {
        let own = queues.iter().filter(|sample| sample["port"] == row["name"].as_str().unwrap());
        let most = own.map(|sample| number(sample, "queue_bytes")).fold(0.0, f64::max) / 1e3;
        let shown = numbers(&row["values"]).into_iter().fold(0.0, f64::max);
        assert!((shown - most).abs() <= 0.0501, "{}: {shown} kB, {most} kB", row["name"]);
    }

    let ports = table(&page, "ports");
    let by_port =
        plots["drops"]["groups"].as_array().unwrap().iter().find(|group| group["title"] == "by port").unwrap();
    let mut listed = 0.0;
    for bar in by_port["bars"].as_array().unwrap() {
        let port = ports.iter().find(|port| port["port"] == bar["name"].as_str().unwrap()).unwrap();
        let columns = ["drops_queue", "drops_link", "drops_random", "drops_ttl", "trims"];
        let parts: Vec<f64> =
            bar["parts"].as_array().unwrap().iter().map(|part| part["value"].as_f64().unwrap()).collect();
        assert_eq!(parts, columns.map(|column| number(port, column)), "{}", bar["name"]);
        listed += parts.iter().sum::<f64>();
    }
    assert!(listed > 100.0, "the cable drops many: {listed}");

    assert_topology(&plots["topology"], &queues);
    assert_evs(&plots["ev-packets"]["series"], &table(&page, "evs"));

    let events = table(&page, "events");
    let kinds = plots["events"]["series"].as_array().unwrap();
    let shown: usize = kinds.iter().map(|kind| kind["x"].as_array().unwrap().len()).sum();
    assert_eq!(shown, events.len());
}

/// Both directions of the cable are marked, and the sum over all intervals is what the links sent.
fn assert_topology(plot: &Value, queues: &[BTreeMap<String, String>]) {
    let times = numbers(&plot["times"]);
    assert!(times.contains(&300.0) && times.contains(&900.0), "{times:?}");
    let links = plot["links"].as_array().unwrap();
    let mut failed: Vec<&str> =
        numbers(&plot["failed"]).iter().map(|link| links[*link as usize]["name"].as_str().unwrap()).collect();
    failed.sort_unstable();
    assert_eq!(failed, ["leaf0->spine0", "spine0->leaf0"], "the plot starts at the failure");
    assert_eq!(links.len(), 16);
    for link in links {
        let name = link["name"].as_str().unwrap();
        let last = queues.iter().rfind(|sample| sample["port"] == name).unwrap();
        let spans = times.windows(2).map(|pair| pair[1] - pair[0]);
        let sent: f64 =
            numbers(&link["load"]).iter().zip(spans).map(|(load, us)| load / 100.0 * 100e9 / 8e6 * us).sum();
        let expected = number(last, "sent_bytes");
        assert!((sent - expected).abs() < expected * 0.01 + 20_000.0, "{name}: {sent} of {expected} bytes");
    }
}

/// Checks the first connection's packets, by how their entropy values were selected.
fn assert_evs(series: &Value, rows: &[BTreeMap<String, String>]) {
    let first = &rows[0]["connection"];
    let own: Vec<_> = rows.iter().filter(|row| row["connection"] == *first).collect();
    for line in series.as_array().unwrap() {
        let column = line["name"].as_str().unwrap().split([' ', ':']).next().unwrap();
        let expected: Vec<f64> = own.iter().map(|row| number(row, column)).collect();
        assert_eq!(numbers(&line["y"]), expected, "{column}");
        assert!(expected.iter().sum::<f64>() > 10.0, "{column}");
    }
    assert_eq!(series.as_array().unwrap().len(), 3, "REPS explores, recycles and freezes");
}

/// Returns the defects of the SVG of each plot, and the number of plots. Texts are measured as laid
/// out by the browser.
const PICTURES: &str = "
    const expected = (plot) => plot.series ? plot.series().length : plot.links ? plot.links().length
        : plot.groups ? plot.groups().flatMap(({ bars }) => bars).flatMap((bar) => bar.parts || [bar]).filter(({ value }) => value > 0).length : null;
    const wrong = [];
    const look = (id, plot) => {
        const [svg, csv] = [plot.svg(), plot.csv()];
        const say = (what) => wrong.push(`${id}: ${what}`);
        const parsed = new DOMParser().parseFromString(svg, 'application/xml');
        if (parsed.querySelector('parsererror')) return say('not XML');
        if (/NaN|undefined|Infinity|null|var\\(/.test(svg)) say('no number');
        if (svg.includes('<image') || parsed.documentElement.getAttribute('width') !== '84mm') say('not a picture for a column');
        const drawn = parsed.querySelectorAll('.series').length;
        if (expected(plot) === null ? drawn < 2 : drawn !== expected(plot)) say(`${drawn} series`);
        if (parsed.querySelector('metadata').textContent !== '\\n' + csv || csv.split('\\n').length < 3) say('other data');
        const picture = document.importNode(parsed.documentElement, true);
        document.body.append(picture);
        picture.style.width = '84mm';
        const box = picture.getBoundingClientRect();
        const texts = [...picture.querySelectorAll('text')].map((text) => ({ text: text.textContent, ...text.getBoundingClientRect().toJSON() }));
        for (const { text, left, right, top, bottom } of texts)
            if (left < box.left - 2 || right > box.right + 2 || top < box.top - 2 || bottom > box.bottom + 2) say(`clipped ${text}`);
        texts.forEach((a, at) => texts.slice(at + 1).forEach((b) => {
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) say(`${a.text} over ${b.text}`);
        }));
        picture.remove();
    };
    const pictures = () => { Object.entries(spray.plots).forEach(([id, plot]) => look(id, plot)); return Object.keys(spray.plots).length; };";

#[test]
fn every_plot_can_be_saved_as_a_picture_with_its_data() {
    let Some(runs) = Runs::new() else { return };
    for (page, count) in [(runs.page(Reps, 1), 10), (runs.overview(), 5)] {
        let script = format!(
            "{PICTURES} const ground = document.documentElement.dataset;
            ground.theme = 'dark';
            const all = pictures();
            const css = spray.plots.goodput || spray.plots['goodput: silent uplink'];
            const button = [...document.querySelectorAll('.either button')].find((own) => own.textContent === 'logarithmic');
            button.click();
            await frames();
            pictures();
            return {{ all, wrong, theme: ground.theme, light: css.svg().includes('#1f6fb2'), table: spray.plots.drops.csv() }};"
        );
        let found = runs.open(&page, 1200, &script);
        assert_eq!((&found["wrong"], &found["all"]), (&serde_json::json!([]), &count.into()), "{}", page.display());
        assert_eq!((&found["theme"], &found["light"]), (&"dark".into(), &true.into()));
        let table = found["table"].as_str().unwrap();
        assert!(table.starts_with("group,bar,part,frames,low,high\n") && table.contains(",link failed,"), "{table}");
    }
}

#[test]
fn completion_times_are_shown_by_workload() {
    let Some(runs) = Runs::of("mixed") else { return };
    let page = runs.page(Reps, 1);
    let names = |plot: &Value| -> Vec<String> {
        plot["series"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().into()).collect()
    };
    let found = runs.open(&page, 1200, &format!("{PLOTS} {PICTURES} pictures(); return {{ plots: plots(), wrong }};"));
    let own = table(&page, "workloads");
    let mut lines = vec!["all flows".to_string()];
    lines.extend(own.iter().map(|row| row["workload"].clone()));
    assert_eq!([names(&found["plots"]["fct"]), names(&found["plots"]["sizes"])], [lines.clone(), lines]);
    assert_eq!(found["wrong"], serde_json::json!([]));

    let script = format!(
        "{PLOTS} {PICTURES}
        const selects = [...document.querySelectorAll('select[name=workload]')];
        const places = selects.map((select) => select.closest('section').id);
        const measure = document.querySelector('select[name=measure]').selectedOptions[0].text;
        selects[1].value = 1;
        selects[1].dispatchEvent(new Event('change'));
        await frames();
        pictures();
        return {{ places, measure, values: selects.map((select) => select.value), plots: plots(), cards: cards(), wrong }};"
    );
    let found = runs.open(&runs.overview(), 1200, &script);
    assert_eq!(found["places"], serde_json::json!(["measure", "fct", "sizes"]));
    assert_eq!(found["measure"], "Slowest flow's completion time, us", "the initially selected measure");
    assert_eq!(found["values"], serde_json::json!(["1", "1", "1"]));
    assert_eq!(found["wrong"], serde_json::json!([]));
    let slowest = SEEDS.map(|seed| number(&table(&runs.page(Reps, seed), "workloads")[1], "fct_max_us"));
    let (mean, _) = of_two(slowest);
    let plots = &found["plots"];
    let bars = plots["measure"]["groups"][0]["bars"].as_array().unwrap();
    let reps = |all: &[Value]| all.iter().find(|one| one["name"] == "reps").unwrap().clone();
    assert_close(reps(bars)["value"].as_f64().unwrap(), mean, "the measure");
    let line = reps(plots["fct: spine1 down"]["series"].as_array().unwrap());
    assert_close(all_completed(&line), slowest[0].max(slowest[1]), "the slowest flow of all seeds");
    assert_eq!(plots["sizes: spine1 down"]["groups"].as_array().unwrap().len(), 1, "its messages are of one size");
}

/// Returns the time by which all flows of all seeds had completed, from a plot's line.
fn all_completed(line: &Value) -> f64 {
    let at = numbers(&line["y"]).iter().position(|share| *share == 100.0).unwrap();
    numbers(&line["x"])[at]
}

/// Returns the mean and half of the 95 % interval of two values.
fn of_two([a, b]: [f64; 2]) -> (f64, f64) {
    let mean = f64::midpoint(a, b);
    let sd = ((a - mean).powi(2) + (b - mean).powi(2)).sqrt();
    (mean, 12.706 * sd / 2f64.sqrt())
}

#[test]
fn plots_that_compare_runs_have_means_and_intervals_and_follow_the_selection() {
    let Some(runs) = Runs::new() else { return };
    let script = format!(
        "{PLOTS}
        const chip = (title, name) => [...document.querySelectorAll(`fieldset[data-choice='${{title}}'] button`)].find((own) => own.textContent === name);
        const rows = () => [...document.querySelectorAll('tbody tr')].filter((row) => !row.hidden).length;
        const all = {{ cards: cards(), plots: plots(), rows: rows() }};
        chip('Balancers', 'ecmp').click();
        await frames();
        const without = {{ plots: plots(), rows: rows() }};
        chip('Seeds', '2').click();
        await frames();
        const one = {{ plots: plots(), rows: rows() }};
        chip('Balancers', 'none').click();
        await frames();
        const none = Object.keys(plots());
        return {{ all, without, one, none }};"
    );
    let found = runs.open(&runs.overview(), 1200, &script);
    let all = &found["all"];
    let cards = all["cards"].as_object().unwrap();
    assert_eq!(cards.len(), 5, "{cards:?}");
    assert!(cards.values().all(|drawn| *drawn == true), "{cards:?}");

    let csv = table(&runs.overview(), "runs");
    let of = |balancer: &str, column: &str| {
        let own: Vec<f64> =
            csv.iter().filter(|row| row["balancer"] == balancer).map(|row| number(row, column)).collect();
        of_two([own[0], own[1]])
    };
    let bars = all["plots"]["measure"]["groups"][0]["bars"].as_array().unwrap();
    assert_eq!(bars.len(), 3);
    for bar in bars {
        let (mean, half) = of(bar["name"].as_str().unwrap(), "fct_max_us");
        let interval = numbers(&bar["interval"]);
        assert_close(bar["value"].as_f64().unwrap(), mean, "mean");
        let factor = (half / mean).exp();
        assert!((interval[1] / (mean * factor) - 1.0).abs() < 1e-3, "{bar}: ±{half}");
        assert!((interval[0] * factor / mean - 1.0).abs() < 1e-3, "{bar}: ±{half}");
    }
    for line in all["plots"]["fct: silent uplink"]["series"].as_array().unwrap() {
        let own = csv.iter().filter(|row| row["balancer"] == line["name"].as_str().unwrap());
        let slowest = own.map(|row| number(row, "fct_max_us")).fold(0.0, f64::max);
        assert_close(all_completed(line), slowest, "the slowest flow of all seeds");
        assert!(numbers(&line["y"]).is_sorted() && numbers(&line["y"]).last() == Some(&100.0), "{line}");
    }
    // The bytes in the bins of all runs of a balancer are those of its flows.
    for line in all["plots"]["goodput: silent uplink"]["series"].as_array().unwrap() {
        let (x, y) = (numbers(&line["x"]), numbers(&line["y"]));
        let bytes = y.iter().sum::<f64>() * (x[1] - x[0]) * 1e3 / 8.0;
        assert!((bytes / (8.0 * 16.0 * 1_048_576.0) - 1.0).abs() < 0.02, "{}: {bytes}", line["name"]);
    }

    let names = |plots: &Value| -> Vec<String> {
        let bars = plots["measure"]["groups"][0]["bars"].as_array().unwrap();
        bars.iter().map(|bar| bar["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&found["without"]["plots"]), ["ops", "reps"]);
    assert_eq!(found["without"]["plots"]["fct: silent uplink"]["series"].as_array().unwrap().len(), 2);
    let counts = ["all", "without", "one"].map(|when| found[when]["rows"].as_u64().unwrap());
    assert_eq!(counts, [6, 4, 2], "rows of the table");
    let single = &found["one"]["plots"]["measure"]["groups"][0]["bars"][0];
    assert!(single["half"].is_null(), "no interval of one run: {single}");
    assert_eq!(found["none"], Value::Array(Vec::new()));
}

#[test]
fn pages_support_narrow_windows_keyboards_and_two_themes() {
    let Some(runs) = Runs::new() else { return };
    let script = "
        const wide = [document.documentElement.scrollWidth, innerWidth];
        const ground = () => getComputedStyle(document.body).backgroundColor;
        const theme = document.querySelector('header select');
        const set = (name) => { theme.value = name; theme.dispatchEvent(new Event('change')); return ground(); };
        const grounds = [set('light'), set('dark')];
        const plot = Object.entries(spray.plots).find(([id]) => id.startsWith('goodput'))[1].plot();
        const range = () => [plot.scales.x.min, plot.scales.x.max];
        const press = (key) => plot.root.parentElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        const ranges = [range()];
        for (const key of ['+', '0']) { press(key); await frames(); ranges.push(range()); }
        const legend = document.querySelector('.legend button');
        const shown = legend ? [legend.getAttribute('aria-pressed'), (legend.click(), legend.getAttribute('aria-pressed'))] : null;
        return { wide, grounds, ranges, shown };";
    for page in [runs.page(Ops, 1), runs.overview()] {
        let found = runs.open(&page, 390, script);
        let [content, window] = [0, 1].map(|at| found["wide"][at].as_u64().unwrap());
        assert!(content <= window && window <= 500, "{}: {content} in {window}", page.display());
        assert_ne!(found["grounds"][0], found["grounds"][1]);
        let width = |at: usize| found["ranges"][at][1].as_f64().unwrap() - found["ranges"][at][0].as_f64().unwrap();
        assert!(width(1) < 0.6 * width(0) && (width(2) - width(0)).abs() < 1e-6, "{}", found["ranges"]);
        assert_eq!(found["shown"], serde_json::json!(["true", "false"]));
    }
}
