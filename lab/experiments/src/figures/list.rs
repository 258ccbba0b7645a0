//! All figures, by paper.

use super::file::Figure;

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its name in numbers of figures.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
}

/// The papers, and what this project adds.
pub const PAPERS: [Paper; 5] = [
    Paper {
        id: "reps",
        name: "REPS",
        title: "REPS, also published as ARCANE with the same figures: `arcane/N` is `reps/N`",
    },
    Paper { id: "flowcut", name: "Flowcut", title: "Flowcut switching" },
    Paper { id: "ofan", name: "OFAN", title: "OFAN" },
    Paper { id: "reunion", name: "Reunion", title: "Reunion" },
    Paper { id: "ours", name: "Ours", title: "Beyond the papers" },
];

impl Figure {
    /// The paper's name, as in the figure's `id`; empty for a file of somebody else.
    pub fn paper(&self) -> &str {
        self.id.split_once('/').map_or("", |(paper, _)| paper)
    }

    /// `figure 7`, `table 1`.
    pub fn name(&self) -> String {
        let number = self.id.split_once('/').map_or(self.id.as_str(), |(_, number)| number);
        let is_figure = number.starts_with(|c: char| c.is_ascii_digit());
        if is_figure { format!("figure {number}") } else { number.replace('-', " ") }
    }

    /// Its name in names of files: `reps-7`.
    pub fn file_name(&self) -> String {
        self.id.replace('/', "-")
    }

    /// `REPS, figure 7: failure modes`.
    pub fn heading(&self) -> String {
        let paper = PAPERS.iter().find(|paper| paper.id == self.paper());
        let paper = paper.map_or_else(String::new, |paper| format!("{}, ", paper.name));
        format!("{paper}{}: {}", self.name(), self.title)
    }
}

macro_rules! files {
    ($($id:literal,)*) => { &[$(($id, include_str!(concat!("../../figures/", $id, ".toml"))),)*] };
}

/// In the order of the papers, and of the figures in each.
const FILES: &[(&str, &str)] = files! {
    "reps/1",
    "reps/2",
    "reps/3",
    "reps/4",
    "reps/5",
    "reps/6",
    "reps/7",
    "reps/8",
    "reps/9",
    "reps/10",
    "reps/11",
    "reps/12",
    "reps/13",
    "reps/14",
    "reps/15",
    "reps/16",
    "reps/17",
    "reps/18",
    "reps/19",
    "reps/20",
    "reps/table-1",
    "flowcut/1",
    "flowcut/2",
    "flowcut/3",
    "flowcut/4",
    "flowcut/5",
    "flowcut/6",
    "flowcut/7",
    "flowcut/8",
    "flowcut/9",
    "flowcut/10",
    "flowcut/11",
    "flowcut/12",
    "flowcut/13",
    "flowcut/14",
    "flowcut/15",
    "flowcut/table-3",
    "flowcut/table-4",
    "ofan/1",
    "ofan/2",
    "ofan/3",
    "ofan/4a",
    "ofan/4b",
    "ofan/5",
    "ofan/6",
    "ofan/7",
    "ofan/8a",
    "ofan/8b",
    "ofan/9",
    "ofan/10a",
    "ofan/10b",
    "ofan/11a",
    "ofan/11b",
    "ofan/12",
    "ofan/13",
    "ofan/14",
    "ofan/15",
    "ofan/16",
    "ofan/17",
    "ofan/18",
    "ofan/19",
    "ofan/table-1",
    "ofan/table-2",
    "ofan/table-3",
    "ofan/lower-bound",
    "ofan/rho-max",
    "ofan/variants",
    "reunion/1",
    "reunion/2",
    "reunion/3",
    "reunion/4",
    "reunion/5",
    "reunion/6",
    "reunion/7",
    "reunion/8",
    "reunion/9",
    "reunion/10",
    "reunion/11",
    "reunion/12",
    "reunion/13",
    "reunion/14",
    "reunion/table-1",
    "reunion/table-2",
    "reunion/equation-2",
    "ours/coexistence",
    "ours/dragonfly",
    "ours/hash-realism",
    "ours/host-schemes",
    "ours/hosts-over-switches",
    "ours/ofan-and-hosts",
    "ours/receivers",
    "ours/reps-plus",
    "ours/reunion-bases",
    "ours/reunion-messages",
    "ours/silent-failures",
};

/// Every figure.
///
/// # Panics
/// Never: a test reads the files.
pub fn all() -> Vec<Figure> {
    let one = |(id, text): &(&str, &str)| {
        Figure::parse(id, text).unwrap_or_else(|error| unreachable!("a test reads figures/{id}.toml: {error}"))
    };
    FILES.iter().map(one).collect()
}

/// The figure of that name.
pub fn find(name: &str) -> Option<Figure> {
    let name = name.strip_prefix("arcane/").map_or(name.into(), |number| format!("reps/{number}"));
    all().into_iter().find(|figure| figure.id == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Scale;
    use crate::figures::plan::Settings;

    #[test]
    fn every_file_is_listed_once_and_by_papers() {
        let folder = spray_test_support::root().join("lab/experiments/figures");
        let mut there = Vec::new();
        for paper in PAPERS {
            for entry in std::fs::read_dir(folder.join(paper.id)).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                there.push(format!("{}/{}", paper.id, name.strip_suffix(".toml").unwrap()));
            }
        }
        let mut listed: Vec<String> = FILES.iter().map(|(id, _)| id.to_string()).collect();
        assert!(all().is_sorted_by_key(|figure| PAPERS.iter().position(|paper| paper.id == figure.paper())));
        there.sort();
        listed.sort();
        assert_eq!(there, listed);
    }

    /// All series under the first condition, and the first series under all: settings of the two hardly meet.
    #[test]
    fn every_series_and_condition_has_a_scenario() {
        for figure in all().iter().filter(|figure| figure.model.is_none()) {
            for scale in [Scale::Quick, Scale::Full] {
                let conditions: Vec<_> = figure.conditions(scale).collect();
                let first =
                    figure.series.iter().take(1).flat_map(|series| conditions.iter().map(move |own| (series, *own)));
                let others = figure.series.iter().skip(1).filter_map(|series| Some((series, *conditions.first()?)));
                for (series, condition) in first.chain(others) {
                    let values: Vec<_> = series.tune.iter().flat_map(|tune| &tune.values).map(Some).collect();
                    let tuned = values.last().copied().flatten();
                    let made = Settings::new(figure, scale, (series, condition), tuned).scenario(figure);
                    assert!(made.is_ok(), "{}, {}, {}: {:?}", figure.id, series.name, condition.name, made.err());
                }
            }
        }
    }

    #[test]
    fn names_and_their_synonyms() {
        let figure = find("arcane/13").unwrap();
        assert_eq!((figure.id.as_str(), figure.name()), ("reps/13", "figure 13".into()));
        assert_eq!(Figure { id: "reps/table-1".into(), ..figure }.name(), "table 1");
        assert!(find("reps/99").is_none());
    }
}
