//! The methods of [`Section`] that read several values. Each wrong value is a fault of its own. No I/O.

use std::ops::RangeInclusive;

use toml::de::DeValue;

use crate::fault::Words;
use crate::section::{At, Section, Value};
use crate::value::choose;

impl<'a> Section<'a> {
    /// A list of strings, at least one.
    pub fn strings(&mut self, key: &'static str) -> Option<Vec<At<String>>> {
        let mut texts = Vec::new();
        for value in self.items(key, "[\"...\"]")? {
            texts.extend(self.str_of(key, value).map(|text| At {
                value: text.value.to_owned(),
                at: text.at,
            }));
        }
        Some(texts)
    }

    /// A list of strings, which may be empty or left out.
    pub fn strings_or_none(&mut self, key: &'static str) -> Vec<At<String>> {
        if self.is_empty_list(key) {
            self.known(key);
            return Vec::new();
        }
        self.strings(key).unwrap_or_default()
    }

    /// A list of strings, each of which `read` understands; empty if the key is left out. `example` is one string.
    pub fn list<T, E: Into<Words>>(
        &mut self,
        key: &'static str,
        example: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<At<T>> {
        let items = self.items(key, &format!("[\"{example}\"]"));
        let mut found = Vec::new();
        for value in items.unwrap_or_default() {
            if let Some(text) = self.str_of(key, value) {
                found.extend(self.understood(key, text.value, text.at, &read));
            }
        }
        found
    }

    /// The same, and the list may be empty.
    pub fn list_or_none<T, E: Into<Words>>(
        &mut self,
        key: &'static str,
        example: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<At<T>> {
        if self.is_empty_list(key) {
            self.known(key);
            return Vec::new();
        }
        self.list(key, example, read)
    }

    /// One text or number, or a list of them, each of which `read` understands.
    pub fn several<T, E: Into<Words>>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<At<T>> {
        let is_list = |value: Value<'a>| value.get_ref().is_array();
        let items = match self.take(key) {
            None => return Vec::new(),
            Some(value) if is_list(value) => self.items(key, "").unwrap_or_default(),
            Some(value) => vec![value],
        };
        let wanted = "a string in quotes, a number, or a list of them";
        let mut found = Vec::new();
        for value in items {
            if let Some(text) = self.text_of(key, value, wanted) {
                found.extend(self.understood(key, &text, self.place_of(value), &read));
            }
        }
        found
    }

    /// One string or a list of them, each of which `read` understands. The list may be empty. `None` if the key is left
    /// out.
    pub fn one_or_more<T, E: Into<Words>>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<At<T>>> {
        let mut found = Vec::new();
        for value in self.one_or_list(key)? {
            if let Some(text) = self.str_of(key, value) {
                found.extend(self.understood(key, text.value, text.at, &read));
            }
        }
        Some(found)
    }

    /// One integer in `range` or a list of them, which may be empty. `None` if the key is left out.
    pub fn one_or_more_integers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<Vec<At<i64>>> {
        let values = self.one_or_list(key)?.into_iter();
        Some(
            values
                .filter_map(|value| self.integer_of(key, value, &range, ""))
                .collect(),
        )
    }

    /// Several of the `choices` by name, at least one, none twice.
    pub fn choices<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<Vec<T>> {
        let texts = self.strings(key)?;
        let mut picked = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            if texts[..i].iter().any(|earlier| earlier.value == text.value) {
                let message = format!("\"{}\" is given twice; once is enough", text.value);
                self.fault(text.at, key, message);
            } else {
                let read = |name: &str| choose(name, choices);
                let value = self.understood(key, &text.value, text.at, read);
                picked.extend(value.map(|value| value.value));
            }
        }
        Some(picked)
    }

    /// A list of integers in `range`, at least one, none twice.
    pub fn integers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Option<At<Vec<i64>>> {
        let mut numbers = Vec::new();
        for value in self.items(key, "[2, 3]")? {
            let Some(number) = self.integer_of(key, value, &range, "") else {
                continue;
            };
            if numbers.contains(&number.value) {
                let message = format!("{} is given twice; once is enough", number.value);
                self.fault(number.at, key, message);
            } else {
                numbers.push(number.value);
            }
        }
        let at = self.place(key)?;
        Some(At { value: numbers, at })
    }

    /// Two numbers in `range`, the first not above the second.
    pub fn pair(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Option<At<(f64, f64)>> {
        let value = self.take(key)?;
        let at = self.place_of(value);
        let [low, high] = match value.get_ref() {
            DeValue::Array(list) if list.len() == 2 => {
                [&list[0], &list[1]].map(|item| self.number_of(key, item, &range, ""))
            }
            _ => return self.wrong(key, value, "two numbers, as in [10, 20]"),
        };
        let (low, high) = (low?.value, high?.value);
        if low > high {
            let message = format!("{low} is above {high}; write the lower one first");
            self.fault(at, key, message);
            return None;
        }
        Some(At {
            value: (low, high),
            at,
        })
    }

    /// The value, or the values of a list.
    fn one_or_list(&mut self, key: &'static str) -> Option<Vec<Value<'a>>> {
        let value = self.take(key)?;
        Some(match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        })
    }

    fn is_empty_list(&self, key: &str) -> bool {
        let list = self.peek(key).and_then(|value| value.get_ref().as_array());
        list.is_some_and(|list| list.is_empty())
    }

    /// The values of a list, at least one.
    fn items(&mut self, key: &'static str, example: &str) -> Option<Vec<Value<'a>>> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::Array(list) if list.is_empty() => {
                let message = "is an empty list; give at least one, or leave the key out";
                self.fault(self.place_of(value), key, message);
                None
            }
            DeValue::Array(list) => Some(list.iter().collect()),
            _ => self.wrong(key, value, &format!("a list such as {example}")),
        }
    }
}
