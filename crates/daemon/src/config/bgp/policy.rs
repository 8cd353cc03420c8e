//! `[[bgp.policy]]` (named policies) and `roas` (the file of route origin authorisations).

use std::path::Path;
use std::sync::Arc;

use base::nearest;
use bgp::policy::{self, Policy, PolicyFault, Roa, Roas, Spec, TermSpec, Then};
use toml::de::DeTable;
use wire::bgp::{FamilyId, Prefix};

use settings::{Notes, Section, choose, set};

/// The policies by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    compiled: policy::Policies,
    /// The names of all policies of the file, also of faulty ones.
    written: Vec<String>,
    roas: Arc<Roas>,
    /// At least one policy has no name that can be read, and the fault was reported.
    is_nameless: bool,
}

impl Policies {
    /// The policy called `name`, or an error message. `Ok(None)` if a fault of that policy was reported.
    pub(super) fn find(&self, name: &str) -> Result<Option<Arc<Policy>>, String> {
        match self.compiled.get(name) {
            Some(policy) => Ok(Some(policy)),
            None if self.is_nameless || self.written.iter().any(|written| written == name) => {
                Ok(None)
            }
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = vec!["accept", "deny"];
        names.extend(self.written.iter().map(String::as_str));
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
    let mut sections = Vec::new();
    let mut specs = Vec::new();
    let mut is_nameless = false;
    for mut section in Section::each(table, "policy", "bgp.policy", notes) {
        section.require(
            "name",
            "give the name that neighbours use: name = \"customers\"",
        );
        let name = section.string("name").map(|name| name.value);
        is_nameless |= name.is_none();
        let mut terms = section.tables("term");
        specs.push(Spec {
            name: name.unwrap_or_default(),
            term: terms.iter_mut().map(term).collect(),
        });
        sections.push((section, terms));
    }
    let compiled = policy::compile(&specs).unwrap_or_else(|faults| {
        for fault in faults {
            let (policy, terms) = &sections[fault.number - 1];
            // A policy without a name is a fault already.
            if fault.key == "name" && !policy.is_string("name") {
                continue;
            }
            report(fault, policy, terms);
        }
        policy::Policies::default()
    });
    for (policy, terms) in sections {
        policy.finish();
        terms.into_iter().for_each(Section::finish);
    }
    Policies {
        compiled,
        written: specs.into_iter().map(|spec| spec.name).collect(),
        roas: Arc::new(roas(table, path, notes)),
        is_nameless,
    }
}

/// Reports a fault at its value.
fn report(fault: PolicyFault, policy: &Section<'_>, terms: &[Section<'_>]) {
    let section = match fault.term {
        Some(number) => &terms[number - 1],
        None => policy,
    };
    let value = fault.value.as_deref();
    let place = value.and_then(|value| section.place_in(fault.key, value));
    let at = place.or_else(|| section.place(fault.key));
    section.fault(at.unwrap_or(section.at()), fault.key, fault.message);
}

const ORIGINS: [(&str, &str); 3] = [("igp", "igp"), ("egp", "egp"), ("incomplete", "incomplete")];
const VALIDITIES: [(&str, &str); 3] = [
    ("valid", "valid"),
    ("invalid", "invalid"),
    ("not-found", "not-found"),
];
const OUTCOMES: [(&str, Then); 3] = [
    ("accept", Then::Accept),
    ("deny", Then::Deny),
    ("next", Then::Next),
];

/// Reads one `[[bgp.policy.term]]`. `policy::compile` checks the texts that have a form of their own.
fn term(section: &mut Section<'_>) -> TermSpec {
    let mut term = TermSpec::default();
    conditions(section, &mut term);
    changes(section, &mut term);
    set(section.choice("then", &OUTCOMES), &mut term.then);
    term
}

fn conditions(section: &mut Section<'_>, term: &mut TermSpec) {
    for (key, to) in [
        ("prefix", &mut term.prefix),
        ("as_path", &mut term.as_path),
        ("community", &mut term.community),
        ("ext_community", &mut term.ext_community),
        ("large_community", &mut term.large_community),
        ("neighbour", &mut term.neighbour),
    ] {
        *to = texts(section, key).unwrap_or_default();
    }
    for (key, to) in [
        ("as_path_contains", &mut term.as_path_contains),
        ("origin_as", &mut term.origin_as),
        ("neighbour_as", &mut term.neighbour_as),
    ] {
        let numbers = section.one_or_more_integers(key, 0..=i64::from(u32::MAX));
        let numbers = numbers.into_iter().flatten();
        *to = numbers.map(|asn| asn.value as u32).collect();
    }
    for (key, names, to) in [
        ("origin", &ORIGINS, &mut term.origin),
        ("rpki", &VALIDITIES, &mut term.rpki),
    ] {
        let chosen = section.one_or_more(key, |text| choose(text, names));
        let chosen = chosen.into_iter().flatten();
        *to = chosen.map(|name| name.value.to_owned()).collect();
    }
    let families = FamilyId::ALL.map(|family| (family.key(), family.key()));
    let family = section.choice("family", &families);
    term.family = family.map(|family| family.value.to_owned());
    term.as_path_length = section.text("as_path_length").map(|text| text.value);
}

fn changes(section: &mut Section<'_>, term: &mut TermSpec) {
    for (key, to) in [
        ("set_local_pref", &mut term.set_local_pref),
        ("set_med", &mut term.set_med),
    ] {
        let number = section.integer(key, 0..=i64::from(u32::MAX), "");
        *to = number.map(|number| number.value as u32);
    }
    set(section.flag("remove_med"), &mut term.remove_med);
    let origin = section.choice("set_origin", &ORIGINS);
    term.set_origin = origin.map(|origin| origin.value.to_owned());
    term.set_next_hop = section.string("set_next_hop").map(|text| text.value);
    if let Some(times) = section.integer("prepend", 0..=255, "times") {
        term.prepend = times.value as u8;
    }
    for (key, to) in [
        ("set_community", &mut term.set_community),
        ("set_ext_community", &mut term.set_ext_community),
        ("set_large_community", &mut term.set_large_community),
    ] {
        *to = texts(section, key);
    }
    for (key, to) in [
        ("add_community", &mut term.add_community),
        ("remove_community", &mut term.remove_community),
        ("add_ext_community", &mut term.add_ext_community),
        ("remove_ext_community", &mut term.remove_ext_community),
        ("add_large_community", &mut term.add_large_community),
        ("remove_large_community", &mut term.remove_large_community),
    ] {
        *to = texts(section, key).unwrap_or_default();
    }
}

fn texts(section: &mut Section<'_>, key: &'static str) -> Option<Vec<String>> {
    let texts = section.one_or_more(key, |text| Ok::<_, String>(text.to_owned()))?;
    Some(texts.into_iter().map(|text| text.value).collect())
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
    let file = settings::beside(path, name);
    let text = match settings::text_of(&file) {
        Ok(text) => text,
        Err(faults) => {
            notes.at(at, "bgp.roas", faults.to_string());
            return Roas::default();
        }
    };
    notes.content("bgp", "roas", text.as_bytes());
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
