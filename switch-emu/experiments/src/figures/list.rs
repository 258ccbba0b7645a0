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
    "reps/13",
    "reps/14",
    "reps/16",
    "reps/17",
    "reps/20",
    "reps/table-1",
    "flowcut/4",
    "flowcut/5",
    "flowcut/6",
    "flowcut/table-3",
    "reunion/equation-2",
};

/// Every figure.
///
/// # Panics
/// Never: a test reads the files.
pub fn all() -> Vec<Figure> {
    let one = |(id, text): &(&str, &str)| {
        Figure::parse(id, text).unwrap_or_else(|error| panic!("figures/{id}.toml: {error}"))
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
    use std::path::Path;

    use super::*;
    use crate::figures::Scale;
    use crate::figures::plan::Settings;

    #[test]
    fn every_file_is_listed_once_and_by_papers() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
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

    #[test]
    fn every_run_of_every_figure_has_a_scenario() {
        for figure in all() {
            for scale in [Scale::Quick, Scale::Full] {
                for (series, condition) in
                    figure.series.iter().flat_map(|series| figure.conditions(scale).map(move |c| (series, c)))
                {
                    let values: Vec<_> = series.tune.iter().flat_map(|tune| &tune.values).map(Some).collect();
                    for value in if values.is_empty() { vec![None] } else { values } {
                        let settings = Settings::new(&figure, scale, (series, condition), value);
                        if figure.model.is_none() {
                            let made = settings.scenario(&figure);
                            assert!(
                                made.is_ok(),
                                "{}, {}, {}: {:?}",
                                figure.id,
                                series.name,
                                condition.name,
                                made.err()
                            );
                        }
                    }
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
