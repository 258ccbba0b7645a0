//! All figures, by paper.

use include_dir::{Dir, include_dir};

use super::file::Figure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    pub id: &'static str,
    pub name: &'static str,
    pub title: &'static str,
}

/// The papers, and the figures that this project adds.
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
    /// Returns the paper's id; empty for a user's file.
    pub fn paper(&self) -> &str {
        self.id.split_once('/').map_or("", |(paper, _)| paper)
    }

    /// Returns `figure 7`, `table 1`.
    pub fn name(&self) -> String {
        let number = self.id.split_once('/').map_or(self.id.as_str(), |(_, number)| number);
        let is_figure = number.starts_with(|c: char| c.is_ascii_digit());
        if is_figure { format!("figure {number}") } else { number.replace('-', " ") }
    }

    /// Returns the stem of its files: `reps-7`.
    pub fn file_name(&self) -> String {
        self.id.replace('/', "-")
    }

    /// Returns `REPS, figure 7: failure modes`.
    pub fn heading(&self) -> String {
        let paper = PAPERS.iter().find(|paper| paper.id == self.paper());
        let paper = paper.map_or_else(String::new, |paper| format!("{}, ", paper.name));
        format!("{paper}{}: {}", self.name(), self.title)
    }
}

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/figures");

/// Returns the sort key within a paper: numbers, `4a` before `4b`, then tables, then others.
fn place(name: &str) -> (u32, bool, &str) {
    let digits = name.trim_end_matches(|c: char| !c.is_ascii_digit());
    (digits.parse().unwrap_or(u32::MAX), !name.starts_with("table"), name)
}

/// Returns every figure, by paper.
pub fn all() -> Vec<Figure> {
    let of = |paper: &Paper| {
        let files = FILES.get_dir(paper.id).into_iter().flat_map(Dir::files);
        let mut texts: Vec<_> =
            files.filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?))).collect();
        texts.sort_by_key(|(name, _)| place(name));
        let one = |(name, text): &(&str, &str)| {
            let id = format!("{}/{name}", paper.id);
            Figure::parse(&id, text).unwrap_or_else(|error| unreachable!("a test reads {id}: {error}"))
        };
        texts.iter().map(one).collect::<Vec<_>>()
    };
    PAPERS.iter().flat_map(of).collect()
}

/// Returns the figure with this id.
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
    fn every_file_is_a_figure_and_they_are_in_order() {
        let ids: Vec<String> = all().into_iter().map(|figure| figure.id).collect();
        assert_eq!(ids.len(), FILES.dirs().map(|paper| paper.files().count()).sum::<usize>());
        let ofan = ["ofan/4b", "ofan/5", "ofan/19", "ofan/table-1", "ofan/table-3", "ofan/lower-bound", "ofan/rho-max"];
        assert!(ofan.map(|id| ids.iter().position(|own| own == id)).is_sorted_by(|a, b| a.is_some() && a < b));
        assert_eq!((ids[0].as_str(), ids[9].as_str()), ("reps/1", "reps/10"));
    }

    /// Checks all series under the first condition, and the first series under all: the settings of
    /// series and conditions hardly interact.
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
                    let made = Settings::new(figure, scale, series, condition, tuned).scenario(figure);
                    assert!(made.is_ok(), "{}, {}, {}: {:?}", figure.id, series.name, condition.name, made.err());
                }
            }
        }
    }

    #[test]
    fn figures_are_found_by_names_and_synonyms() {
        let figure = find("arcane/13").unwrap();
        assert_eq!((figure.id.as_str(), figure.name()), ("reps/13", "figure 13".into()));
        assert_eq!(Figure { id: "reps/table-1".into(), ..figure }.name(), "table 1");
        assert!(find("reps/99").is_none());
    }
}
