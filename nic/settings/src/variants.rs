//! The documents of a sweep, one per combination of values, and resolved settings.

use std::path::Path;

use schemars::JsonSchema;
use serde_json::Value;

use crate::axes::{Axis, AxisValue};
use crate::document::{Document, Node, Tree};
use crate::error::{Error, Origin};
use crate::shape::{Field, Scalar, Shape};

impl Document {
    /// Returns the axes chosen by [`Document::variants`]; empty in a document as read.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns one document per combination of values, where `T` accepts one value and there is a
    /// list; without lists, itself. The first axis changes most slowly.
    ///
    /// # Errors
    /// There are more than `most` combinations, or a list contains a value twice.
    pub fn variants<T: JsonSchema + 'static>(&self, most: usize) -> Result<Vec<Self>, Error> {
        let mut lists = Vec::new();
        walk(&self.root, &Shape::of::<T>(), None, &mut Vec::new(), &mut |path, node, field, shape| {
            if let (Some(Field { single: false, .. }), Shape::Scalar(_)) = (field, shape)
                && let Tree::List(items) = &node.value
                && !items.is_empty()
                && items.iter().all(|item| matches!(item.value, Tree::Scalar(_)))
            {
                lists.push((path.join("."), node.at.clone(), items.clone()));
            }
        });
        let mut variants = vec![self.clone()];
        for (path, at, items) in &lists {
            let runs = variants.len() * items.len();
            if runs > most {
                let message = format!("this list leads to {runs} combinations of values; allowed: at most {most}");
                return Err(self.error_from(at, message));
            }
            let values = values(items);
            if let Some(twice) = (1..values.len()).find(|at| values[..*at].contains(&values[*at])) {
                let message = format!("the list has {} twice; allowed: each value once", items[twice].given);
                return Err(self.error_from(&items[twice].at, message));
            }
            let choices: Vec<(&Node, AxisValue)> = items.iter().zip(values).collect();
            let with = |variant: &Self, (item, value): &(&Node, AxisValue)| {
                let mut chosen = variant.clone();
                if let Some(place) = chosen.find_mut(path) {
                    let named_at = place.named_at.clone();
                    *place = Node { named_at, ..(*item).clone() };
                }
                chosen.axes.push(Axis { path: path.clone(), value: value.clone() });
                chosen
            };
            variants = variants.iter().flat_map(|variant| choices.iter().map(|one| with(variant, one))).collect();
        }
        Ok(variants)
    }

    /// Returns the settings as JSON in the form of their declaration `T`, without defaults and with
    /// absolute paths of files. Errors are those of [`Document::read`].
    pub fn resolved<T: JsonSchema + 'static>(&self) -> Result<Value, Error> {
        let shape = Shape::of::<T>();
        let mut files = Vec::new();
        self.each_file(&shape, |path, name| files.push((path, name)));
        let mut found = self.clone();
        for (path, name) in files {
            let file = self.folder(&path).join(&name);
            let file = std::path::absolute(&file).unwrap_or(file);
            if let Some(node) = found.find_mut(&path) {
                node.value = Tree::Scalar(file.to_string_lossy().into());
            }
        }
        found.checked(&shape)
    }

    /// Returns the files that the settings name, relative to the working directory.
    pub fn files<T: JsonSchema + 'static>(&self) -> Vec<std::path::PathBuf> {
        let mut files = Vec::new();
        self.each_file(&Shape::of::<T>(), |path, name| files.push(self.folder(&path).join(Path::new(&name))));
        files
    }

    fn each_file(&self, shape: &Shape, mut found: impl FnMut(String, String)) {
        walk(&self.root, shape, None, &mut Vec::new(), &mut |path, node, _, shape| {
            if let (Shape::Scalar(Scalar::File), Tree::Scalar(value)) = (shape, &node.value) {
                let name = match (value.as_str(), &node.at) {
                    (Some(name), _) => name,
                    (None, Origin::Assignment(_)) => &node.given,
                    (None, Origin::File(_)) => return,
                };
                if name != crate::schema::AUTO {
                    found(path.join("."), name.into());
                }
            }
        });
    }
}

/// Called with path, node, field (unless it is an entry of a list) and shape of a setting.
type Visit<'a, 'f> = &'f mut dyn FnMut(&[String], &'a Node, Option<&Field>, &Shape);

fn walk<'a>(node: &'a Node, shape: &Shape, field: Option<&Field>, path: &mut Vec<String>, visit: Visit<'a, '_>) {
    match (shape, &node.value) {
        (Shape::Table(table), Tree::Table(fields)) => {
            for (name, inner) in fields {
                // The field of any variant: those of one name all accept one value, or all a list.
                let Some(field) = table.fields.iter().find(|field| field.name == *name) else { continue };
                path.push(name.clone());
                walk(inner, &field.shape, Some(field), path, visit);
                path.pop();
            }
        }
        (Shape::List(list), Tree::List(items)) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                walk(item, &list.of, None, path, visit);
                path.pop();
            }
        }
        (Shape::List(list), _) if list.single => walk(node, &list.of, None, path, visit),
        _ => visit(path, node, field, shape),
    }
}

/// Returns the values of an axis, all of the most specific kind that holds them.
fn values(items: &[Node]) -> Vec<AxisValue> {
    let scalar = |item: &Node| if let Tree::Scalar(value) = &item.value { value.clone() } else { Value::Null };
    let given: Vec<Value> = items.iter().map(scalar).collect();
    let all = |read: &dyn Fn(&Value) -> Option<AxisValue>| given.iter().map(read).collect::<Option<Vec<_>>>();
    all(&|value| value.as_bool().map(AxisValue::Flag))
        .or_else(|| all(&|value| value.as_i64().map(AxisValue::Whole)))
        .or_else(|| all(&|value| value.as_f64().map(AxisValue::Number)))
        .unwrap_or_else(|| {
            let text = |(item, value): (&Node, &Value)| value.as_str().unwrap_or(&item.given).to_string();
            items.iter().zip(&given).map(|both| AxisValue::Text(text(both))).collect()
        })
}
