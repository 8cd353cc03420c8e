//! Warns about rules that are valid but probably a mistake: rules that no packet reaches, filters that deny or
//! accept everything.

use super::{Remarks, Source, Written};
use crate::rule::{Addresses, Rule, Span};
use crate::text::remark::Remark;
use crate::{Direction, rule};

/// The most earlier rules with which a rule is compared.
const LOOKED_AT_MAX: usize = 512;
/// The most warnings.
const ADVICE_MAX: usize = 50;

/// Checks all filters of a file.
pub(crate) fn advise(filters: &[Source], remarks: &mut Remarks) {
    for filter in filters {
        for (direction, written) in Direction::ALL.into_iter().zip(&filter.directions) {
            match written {
                Some(written) => unreached(written, remarks),
                None => remark(
                    remarks,
                    filter.line,
                    &filter.name,
                    format!("{direction}: all packets pass"),
                    format!("a line '{direction}', if they should not"),
                ),
            }
        }
    }
}

fn remark(remarks: &mut Remarks, line: usize, word: &str, message: String, right: String) {
    if remarks.advice.len() < ADVICE_MAX {
        remarks.advice.push(Remark {
            line,
            column: 1,
            word: word.to_owned(),
            message,
            right,
        });
    }
}

fn unreached(written: &Written, remarks: &mut Remarks) {
    for (at, rule) in written.rules.iter().enumerate() {
        let before = &written.rules[at.saturating_sub(LOOKED_AT_MAX)..at];
        if let Some(first) = before.iter().find(|first| covers(first, rule)) {
            let message = format!(
                "never decides: line {} matches all that it matches",
                first.line
            );
            let right = "leave it out, or move it up".to_owned();
            remark(remarks, rule.line, &rule.text, message, right);
        }
    }
}

/// Whether a rule matches every packet that another one matches; false if uncertain.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    let protocols = wide.protocols.is_empty()
        || !narrow.protocols.is_empty()
            && narrow.protocols.iter().all(|one| wide.has_protocol(*one));
    let version = wide.version.is_none()
        || wide.version == narrow.version
        || [4, 6]
            .iter()
            .all(|one| !narrow.has_version(*one) || wide.version == Some(*one));
    let flags = wide.flags.is_none_or(
        |(mask, want)| matches!(narrow.flags, Some((m, w)) if m & mask == mask && w & mask == want),
    );
    let established = !wide.established
        || narrow.established
        || matches!(narrow.flags, Some((_, want)) if want & rule::ESTABLISHED != 0);
    let fragments = if narrow.fragment {
        wide.has_later_fragments()
    } else {
        !wide.fragment && (wide.has_later_fragments() || !narrow.has_later_fragments())
    };
    // A rule for later fragments checks no ports, so an accepting rule that checks ports covers it.
    let upper = narrow.fragment
        || within(&narrow.source_ports, &wide.source_ports)
            && within(&narrow.destination_ports, &wide.destination_ports)
            && within(&narrow.icmp, &wide.icmp)
            && flags
            && established;
    protocols
        && version
        && fragments
        && upper
        && addresses_within(&narrow.source, &wide.source)
        && addresses_within(&narrow.destination, &wide.destination)
}

fn within(narrow: &[Span], wide: &[Span]) -> bool {
    wide.is_empty()
        || !narrow.is_empty()
            && narrow
                .iter()
                .all(|one| wide.iter().any(|all| all.0 <= one.0 && one.1 <= all.1))
}

fn addresses_within(narrow: &[Addresses], wide: &[Addresses]) -> bool {
    let is_in = |one: &Addresses| {
        wide.iter()
            .any(|all| all.version == one.version && all.first <= one.first && one.last <= all.last)
    };
    wide.is_empty() || !narrow.is_empty() && narrow.iter().all(is_in)
}
