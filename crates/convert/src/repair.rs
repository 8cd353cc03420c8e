//! Lets the reader of a result judge it, and removes what that reader refuses.

use anyhow::{Result, bail, ensure};
use settings::Faults;

use crate::document::{Document, Origin, Table};
use crate::report::{Fate, Report};

/// Rounds of leaving out what the reader refuses; each lists up to 100 faults.
const ROUNDS_MAX: usize = 256;

/// An entry, or the header of a section, that the reader refuses, and why.
pub type Wrong = (Origin, String);

/// Writes the document after `head`, and lets `remove` take out what `judge` refuses, until it refuses nothing. `judge`
/// receives the text; `remove` returns whether it removed anything.
///
/// # Errors
/// `judge` fails, or refuses the result whatever is left out.
pub fn repair(
    document: &mut Document,
    report: &mut Report,
    head: &str,
    judge: impl Fn(&str) -> Result<Option<Faults>>,
    remove: impl Fn(&mut Document, &mut Report, &Faults, &[Wrong]) -> bool,
) -> Result<()> {
    // Each round removes an entry or a section, so this ends by itself; the limit bounds the time.
    for _ in 0..ROUNDS_MAX {
        let (text, origins) = document.write(head);
        let Some(faults) = judge(&text)? else {
            return Ok(());
        };
        let wrong = wrong(&origins, &faults);
        ensure!(
            remove(document, report, &faults, &wrong),
            "the result has a fault that no line of the source causes: {faults}"
        );
    }
    bail!(
        "the result still has faults after {ROUNDS_MAX} rounds of leaving out what headend refuses"
    )
}

/// The entries and headers that have faults, from the end of the document, so that removing one leaves the others'
/// numbers valid.
pub fn wrong(origins: &[Option<Origin>], faults: &Faults) -> Vec<Wrong> {
    let mut wrong: Vec<Wrong> = Vec::new();
    for fault in faults.iter().filter(|fault| !fault.is_advice) {
        let line = fault.place.map_or(0, |place| place.line);
        let origin = line.checked_sub(1).and_then(|at| *origins.get(at)?);
        if let Some(origin) = origin
            && wrong.iter().all(|(known, _)| *known != origin)
        {
            let remedy = if fault.remedy.is_empty() { "" } else { "; " };
            wrong.push((origin, format!("{}{remedy}{}", fault.message, fault.remedy)));
        }
    }
    wrong.sort_by(|(one, _), (other, _)| other.cmp(one));
    wrong
}

/// Reports the lines of what was removed because of `message`.
pub fn take_back(removed: &[Table], message: &str, report: &mut Report) {
    for table in removed {
        for entry in &table.entries {
            for place in &entry.from {
                let key = table.name_of(entry);
                let why = format!("headend refuses the value of {key}: {message}");
                report.take_back(place, &key, Fate::NotSupported, &why);
            }
        }
    }
}
