//! Rows to families of samples: the kind of each field says what it is, its unit how it is named and scaled.

use std::collections::HashSet;

use control::rows::{Field, Kind, Unit, row_type};
use serde_json::{Map, Number, Value};

use super::names;
use crate::link::Rows;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Gauge,
    Counter,
    Histogram,
}

/// The samples of one name.
#[derive(Debug)]
pub(super) struct Family {
    /// The name without `_total`.
    pub(super) name: String,
    pub(super) kind: Type,
    /// `seconds`, `bytes` and so on, which the name ends with.
    pub(super) unit: Option<&'static str>,
    pub(super) help: String,
    pub(super) samples: Vec<Sample>,
    /// The labels of the samples: each set may occur once.
    seen: HashSet<Vec<(String, String)>>,
}

/// One value, or the buckets of one histogram, with its labels.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: Measure,
}

#[derive(Debug)]
pub(super) enum Measure {
    Number(Number),
    Histogram {
        /// Upper bounds in the family's unit, ascending and finite, each with the count up to it.
        buckets: Vec<(f64, u64)>,
        count: u64,
        sum: f64,
    },
}

/// All families, in the order of their first samples.
#[derive(Debug, Default)]
pub(super) struct Families {
    pub(super) families: Vec<Family>,
}

/// What the fields of one object share.
struct Place<'a> {
    schema: &'static str,
    /// The name so far.
    prefix: String,
    /// The keys so far, with a dot after each.
    path: String,
    labels: Vec<(String, String)>,
    object: &'a Map<String, Value>,
}

impl Families {
    /// Adds one gauge.
    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        value: impl Into<Number>,
    ) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let labels = labels.iter().map(own).collect();
        let family = self.family(name.to_owned(), Type::Gauge, None, help);
        family.add(labels, Measure::Number(value.into()));
    }

    /// Adds the samples of every row that has any.
    pub(super) fn add_rows(&mut self, found: &Rows) {
        for row in &found.rows {
            let Ok(Value::Object(object)) = serde_json::from_str(row) else {
                continue;
            };
            let schema = object.get("schema").and_then(Value::as_str);
            let Some(declared) = schema.and_then(row_type) else {
                continue;
            };
            let Some(prefix) = names::prefix(declared.schema) else {
                continue;
            };
            let mut place = Place {
                schema: declared.schema,
                prefix: prefix.to_owned(),
                path: String::new(),
                labels: Vec::new(),
                object: &object,
            };
            place.add_labels(declared.fields);
            self.add_fields(&place, declared.fields);
        }
    }

    fn add_fields(&mut self, place: &Place<'_>, fields: &'static [Field]) {
        for field in fields {
            let path = place.path_of(field);
            if names::is_left_out(place.schema, &path) {
                continue;
            }
            match field.kind {
                Kind::Flat(part) => self.add_fields(place, part),
                Kind::Part(part) => self.add_part(place, field, part),
                Kind::Gauge if !place.is_sum(field, fields) => {
                    self.add_number(place, field, Type::Gauge);
                }
                Kind::Counter if place.sum_of(field, fields).is_some() => {
                    self.add_histogram(place, field, fields);
                }
                Kind::Counter if !place.is_sum(field, fields) => {
                    self.add_number(place, field, Type::Counter);
                }
                Kind::Text if names::has_state(place.schema, &path) => {
                    self.add_state(place, field);
                }
                Kind::Id | Kind::Text | Kind::Gauge | Kind::Counter => {}
            }
        }
    }

    /// An object within, or each of a list.
    fn add_part(&mut self, place: &Place<'_>, field: &Field, part: &'static [Field]) {
        let parts = match place.object.get(field.name) {
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => return,
        };
        for object in parts.iter().filter_map(Value::as_object) {
            let mut inner = Place {
                schema: place.schema,
                prefix: place.name(field),
                path: format!("{}.", place.path_of(field)),
                labels: place.labels.clone(),
                object,
            };
            inner.add_labels(part);
            self.add_fields(&inner, part);
        }
    }

    /// A number, or an object of numbers.
    fn add_number(&mut self, place: &Place<'_>, field: &Field, kind: Type) {
        let (name, unit, scale) = place.name_in_unit(field);
        let value = place.object.get(field.name);
        let many = match value {
            Some(Value::Number(_)) => Vec::from_iter(value.map(|value| (None, value))),
            Some(Value::Object(map)) => map.iter().map(|(k, v)| (Some(k), v)).collect(),
            _ => return,
        };
        for (key, value) in many {
            let Some(number) = value.as_number().and_then(|number| scaled(number, scale)) else {
                continue;
            };
            let mut labels = place.labels.clone();
            if let Some(key) = key {
                let label = names::key_of(place.schema, &place.path_of(field));
                labels.push((label.to_owned(), key.clone()));
            }
            let family = self.family(name.clone(), kind, unit, place.help(field));
            family.add(labels, Measure::Number(number));
        }
    }

    /// Counts by upper bound in microseconds, and the sum beside them.
    fn add_histogram(&mut self, place: &Place<'_>, field: &Field, fields: &'static [Field]) {
        let sum = place.sum_of(field, fields);
        let sum = sum.and_then(|sum| place.object.get(sum.name)?.as_f64());
        let counts = place.object.get(field.name).and_then(Value::as_object);
        let (Some(sum), Some(counts)) = (sum, counts) else {
            return;
        };
        let bucket = |(bound, count): (&String, &Value)| {
            let bound: f64 = bound.parse().ok()?;
            Some((bound / 1e6, count.as_u64()?))
        };
        let mut buckets: Vec<(f64, u64)> = counts.iter().filter_map(bucket).collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut count = 0;
        for bucket in &mut buckets {
            count += bucket.1;
            bucket.1 = count;
        }
        buckets.retain(|(bound, _)| bound.is_finite());
        let measure = Measure::Histogram {
            buckets,
            count,
            sum: sum / 1e6,
        };
        let name = format!("{}_seconds", place.name(field));
        let family = self.family(name, Type::Histogram, Some("seconds"), place.help(field));
        family.add(place.labels.clone(), measure);
    }

    fn add_state(&mut self, place: &Place<'_>, field: &Field) {
        let Some(state) = place.object.get(field.name).and_then(Value::as_str) else {
            return;
        };
        let exact = names::exact_state_of(place.schema, &place.path_of(field));
        let exact = exact.and_then(|name| place.object.get(name)?.as_str());
        let exact = exact.filter(|text| text.starts_with(state));
        let mut labels = place.labels.clone();
        labels.push(("state".to_owned(), exact.unwrap_or(state).to_owned()));
        let family = self.family(place.name(field), Type::Gauge, None, place.help(field));
        family.add(labels, Measure::Number(1.into()));
    }

    fn family(
        &mut self,
        name: String,
        kind: Type,
        unit: Option<&'static str>,
        help: &str,
    ) -> &mut Family {
        let found = self.families.iter().position(|family| family.name == name);
        let index = found.unwrap_or(self.families.len());
        if found.is_none() {
            self.families.push(Family {
                name,
                kind,
                unit,
                help: help.to_owned(),
                samples: Vec::new(),
                seen: HashSet::new(),
            });
        }
        &mut self.families[index]
    }
}

impl Family {
    /// Adds a sample. Of two with the same labels the first counts: the formats allow no second.
    fn add(&mut self, labels: Vec<(String, String)>, value: Measure) {
        if self.seen.insert(labels.clone()) {
            self.samples.push(Sample { labels, value });
        }
    }
}

impl Place<'_> {
    fn path_of(&self, field: &Field) -> String {
        format!("{}{}", self.path, field.name)
    }

    fn help(&self, field: &Field) -> &'static str {
        names::help_of(self.schema, &self.path_of(field), field.help)
    }

    /// The name of a field's metric, without its unit.
    fn name(&self, field: &Field) -> String {
        let own = names::name_of(self.schema, &self.path_of(field), field.name);
        let words = own.split('_').filter(|word| *word != "octets");
        let mut name = self.prefix.clone();
        for word in words.filter(|word| !word.is_empty()) {
            name.push('_');
            name.push_str(word);
        }
        name
    }

    /// The name with the base unit, that unit, and the factor to it.
    fn name_in_unit(&self, field: &Field) -> (String, Option<&'static str>, f64) {
        let name = self.name(field);
        let (endings, unit, scale): (&[&str], &'static str, f64) = match field.unit {
            Unit::One => return (name.trim_end_matches("_total").to_owned(), None, 1.0),
            Unit::Seconds => (&["_s"], "seconds", 1.0),
            Unit::Millis => (&["_ms"], "seconds", 1e-3),
            Unit::Micros => (&["_us"], "seconds", 1e-6),
            Unit::Bytes => (&["_bytes"], "bytes", 1.0),
            // Prometheus has bytes as its base unit.
            Unit::PerSecond if name.ends_with("bps") => (&["_bps"], "bytes_per_second", 0.125),
            Unit::PerSecond => (&["_per_s", "_ps"], "per_second", 1.0),
            Unit::Ratio | Unit::Share => (&["_ratio"], "ratio", 1.0),
        };
        let ending = endings.iter().find_map(|ending| name.strip_suffix(ending));
        let stem = ending.unwrap_or(&name);
        (format!("{stem}_{unit}"), Some(unit), scale)
    }

    /// Adds the labels of the object's Ids, and of what the table names.
    fn add_labels(&mut self, fields: &'static [Field]) {
        for field in fields {
            let path = self.path_of(field);
            let label = match field.kind {
                Kind::Flat(part) => {
                    self.add_labels(part);
                    continue;
                }
                _ if names::is_left_out(self.schema, &path) => None,
                Kind::Id => Some(names::label_of(self.schema, &path).unwrap_or(field.name)),
                _ => names::label_of(self.schema, &path),
            };
            let value = match self.object.get(field.name) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => continue,
            };
            if let Some(label) = label {
                self.labels.push((label.to_owned(), value));
            }
        }
    }

    /// The field with the sum, if `field` counts by upper bound: its name has `_us` at its end.
    fn sum_of(&self, field: &Field, fields: &'static [Field]) -> Option<&'static Field> {
        let has_bounds = |sum: &&Field| {
            sum.unit == Unit::Micros
                && sum.name.strip_suffix("_us") == Some(field.name)
                && self.object.get(field.name).is_some_and(Value::is_object)
        };
        fields.iter().find(has_bounds)
    }

    /// Whether `field` is the sum of a histogram.
    fn is_sum(&self, field: &Field, fields: &'static [Field]) -> bool {
        let is_it = |counts: &Field| {
            let sum = self.sum_of(counts, fields);
            sum.is_some_and(|sum| sum.name == field.name)
        };
        fields.iter().any(is_it)
    }
}

/// The number in the base unit. A number that needs no factor keeps all its digits.
fn scaled(number: &Number, scale: f64) -> Option<Number> {
    if scale == 1.0 {
        return Some(number.clone());
    }
    // A division by 1,000 or 1,000,000 has fewer digits than a product with 0.001.
    Number::from_f64(number.as_f64()? / (1.0 / scale).round())
}
