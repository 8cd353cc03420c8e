//! `[[bgp.policy]]` (named policies) and `roas` (the file of route origin authorisations).

use std::path::Path;
use std::sync::Arc;

use base::nearest;
use bgp::policy::{self, Policy, PolicyFault, Roa, Roas, Spec};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::bgp::Prefix;

use settings::Notes;

/// The policies by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    compiled: policy::Policies,
    roas: Arc<Roas>,
    /// At least one policy is faulty, and the fault was reported.
    is_broken: bool,
}

impl Policies {
    /// The policy called `name`, or an error message. `Ok(None)` if it may be one of the faulty policies.
    pub(super) fn find(&self, name: &str) -> Result<Option<Arc<Policy>>, String> {
        match self.compiled.get(name) {
            Some(policy) => Ok(Some(policy)),
            // The name may belong to a faulty policy, which was reported already.
            None if self.is_broken => Ok(None),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = vec!["accept", "deny"];
        names.extend(self.compiled.names());
        match nearest(name, &names) {
            Some(right) => format!("there is no policy \"{name}\"; did you mean \"{right}\"?"),
            None => format!(
                "there is no policy \"{name}\"; there are {}",
                names.join(", ")
            ),
        }
    }

    /// The route origin authorisations.
    pub(super) fn roas(&self) -> Arc<Roas> {
        Arc::clone(&self.roas)
    }
}

/// Reads the policies and the `roas` file.
pub(super) fn read(table: &DeTable<'_>, path: &Path, notes: &Notes<'_>) -> Policies {
    let mut specs: Vec<(Spec, usize)> = Vec::new();
    let before = notes.len();
    if let Some(value) = table.get("policy") {
        let DeValue::Array(list) = value.get_ref() else {
            let message = "is no list of sections; write [[bgp.policy]]";
            notes.at(value.span().start, "bgp.policy", message);
            return Policies::default();
        };
        for value in list.iter() {
            specs.extend(spec(value, notes));
        }
    }
    let plain: Vec<Spec> = specs.iter().map(|(spec, _)| spec.clone()).collect();
    let compiled = policy::compile(&plain).map_err(|fault| {
        let at = place(table, &fault);
        notes.at(at, key(&fault), fault.message);
    });
    let compiled = compiled.unwrap_or_default();
    let roas = roas(table, path, notes);
    Policies {
        compiled,
        roas: Arc::new(roas),
        is_broken: notes.len() > before,
    }
}

fn spec(value: &Spanned<DeValue<'_>>, notes: &Notes<'_>) -> Option<(Spec, usize)> {
    let at = value.span().start;
    let Some(table) = value.get_ref().as_table() else {
        notes.at(at, "bgp.policy", "is no section; write [[bgp.policy]]");
        return None;
    };
    let table = Spanned::new(value.span(), table.clone());
    match Spec::deserialize(toml::de::Deserializer::from(table)) {
        Ok(spec) => Some((spec, at)),
        Err(error) => {
            let at = error.span().map_or(at, |span| span.start);
            notes.at(at, "bgp.policy", error.message().replace('\n', "; "));
            None
        }
    }
}

/// The position of the faulty key in the file.
fn place(table: &DeTable<'_>, fault: &PolicyFault) -> usize {
    let policies = table
        .get("policy")
        .and_then(|value| value.get_ref().as_array());
    let named = |value: &&Spanned<DeValue<'_>>| {
        let name = value
            .get_ref()
            .as_table()
            .and_then(|table| table.get("name"));
        name.and_then(|name| name.get_ref().as_str()) == Some(fault.policy.as_str())
    };
    // If a name is used twice, the second policy is the faulty one.
    let policy = policies.and_then(|list| list.iter().rev().find(named));
    let Some(policy) = policy else { return 0 };
    let mut found = policy;
    if let Some(term) = fault.term {
        let terms = policy
            .get_ref()
            .as_table()
            .and_then(|table| table.get("term"));
        let terms = terms.and_then(|terms| terms.get_ref().as_array());
        found = terms.and_then(|terms| terms.get(term - 1)).unwrap_or(found);
    }
    let key = found
        .get_ref()
        .as_table()
        .and_then(|table| table.get(fault.key));
    key.unwrap_or(found).span().start
}

fn key(fault: &PolicyFault) -> String {
    match fault.term {
        Some(_) => format!("bgp.policy.term.{}", fault.key),
        None => format!("bgp.policy.{}", fault.key),
    }
}

fn roas(table: &DeTable<'_>, path: &Path, notes: &Notes<'_>) -> Roas {
    let Some(value) = table.get("roas") else {
        return Roas::default();
    };
    let at = value.span().start;
    let Some(name) = value.get_ref().as_str() else {
        notes.at(at, "bgp.roas", "must be the name of a file in quotes");
        return Roas::default();
    };
    let file = super::beside(path, name);
    let text = match settings::text_of(&file) {
        Ok(text) => text,
        Err(faults) => {
            notes.at(at, "bgp.roas", faults.to_string());
            return Roas::default();
        }
    };
    let mut roas = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        match roa(line) {
            Ok(roa) => roas.extend(roa),
            Err(message) => {
                notes.at(
                    at,
                    "bgp.roas",
                    format!("{}:{number}: {message}", file.display()),
                );
                break;
            }
        }
    }
    roas.into_iter().collect()
}

/// Parses a line of prefix, maximum length and AS. `None` for an empty line, a comment or the heading.
pub(super) fn roa(line: &str) -> Result<Option<Roa>, String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() || line.starts_with("prefix") {
        return Ok(None);
    }
    let wrong = || format!("\"{line}\" is not of the form 198.51.100.0/24,24,64500");
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [prefix, longest, asn] = fields[..] else {
        return Err(wrong());
    };
    let prefix: Prefix = super::prefix(prefix)?;
    let len_max: u8 = longest.parse().map_err(|_| wrong())?;
    let asn = asn.trim_start_matches("AS").parse().map_err(|_| wrong())?;
    if len_max < prefix.len() || len_max > prefix.family().bits() {
        return Err(format!(
            "the longest must be {} to {}",
            prefix.len(),
            prefix.family().bits()
        ));
    }
    Ok(Some(Roa {
        prefix,
        len_max,
        asn,
    }))
}
