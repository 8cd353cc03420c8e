//! Explains which line decides on a packet, and why earlier lines do not match. It walks the rules as written,
//! independently of the compiled form, and so cross-checks it.

use std::fmt;

use wire::ip::{Header, Upper};
use wire::packet::Fragment;

use crate::rule::{Addresses, Mismatch, Rule, is_damaged};
use crate::set::{DAMAGED, Filter, Verdict};
use crate::{Direction, Names, describe, packet};

/// A line that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Line of the file, from 1; 0 for an implicit rule.
    pub line: usize,
    /// As written.
    pub text: String,
    /// Why it does not match; `None` if it matches.
    pub why_not: Option<String>,
}

/// The verdict for a packet, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The filter's Filter-Id.
    pub filter: String,
    /// The packet's direction.
    pub direction: Direction,
    /// The packet as text.
    pub packet: String,
    /// The verdict of the compiled form.
    pub verdict: Verdict,
    /// The lines up to the deciding one, which is last.
    pub steps: Vec<Step>,
    /// A further remark; may be empty.
    pub note: &'static str,
}

impl Filter {
    /// Why a packet gets the verdict that [`Filter::matches`] returns.
    #[must_use]
    pub fn explain(&self, packet: &Header, direction: Direction, names: &Names) -> Explanation {
        let mut explanation = Explanation {
            filter: self.name().to_owned(),
            direction,
            packet: describe(packet, names),
            verdict: self.matches(packet, direction),
            steps: Vec::new(),
            note: "",
        };
        let Some(written) = self.written(direction) else {
            explanation.note = "this direction is not filtered";
            return explanation;
        };
        if is_damaged(packet) {
            explanation.steps.push(Step {
                line: 0,
                text: DAMAGED.to_owned(),
                why_not: None,
            });
            explanation.note = if packet.upper == Upper::Cut {
                "its transport header is not whole (RFC 1858 3), so no rule could tell what it is"
            } else {
                "a TCP fragment at offset 8 would overwrite the flags of the first one (RFC 3128)"
            };
            return explanation;
        }
        for rule in written.rules.iter().chain([&written.default]) {
            let mismatch = rule.mismatch(packet);
            explanation.steps.push(Step {
                line: rule.line,
                text: rule.text.clone(),
                why_not: mismatch.map(|mismatch| why(mismatch, rule, packet, names)),
            });
            if mismatch.is_none() {
                if packet.fragment == Fragment::Later && rule.asks_upper() {
                    explanation.note = "a later fragment has no ports: rules that accept go by addresses and protocol";
                }
                break;
            }
        }
        explanation
    }
}

/// Why a rule does not match, as text.
fn why(mismatch: Mismatch, rule: &Rule, packet: &Header, names: &Names) -> String {
    let list = |addresses: &[Addresses]| match addresses {
        [one] => one.to_string(),
        more => format!("any of {} ranges", more.len()),
    };
    match mismatch {
        Mismatch::Version => format!("it is IPv{}", packet.version),
        Mismatch::Protocol => match names.protocol_name(packet.protocol) {
            Some(name) => format!("the protocol is {name}"),
            None => format!("the protocol is {}", packet.protocol),
        },
        Mismatch::Source => format!(
            "the source {} is not in {}",
            packet.source_address(),
            list(&rule.source)
        ),
        Mismatch::Destination => format!(
            "the destination {} is not in {}",
            packet.destination_address(),
            list(&rule.destination)
        ),
        Mismatch::NoFragment => "it is no later fragment".to_owned(),
        Mismatch::LaterFragment => {
            "a later fragment has no ports, flags or ICMP type to deny it by".to_owned()
        }
        Mismatch::SourcePort => format!("the source port is {}", packet.source_port),
        Mismatch::DestinationPort => format!("the destination port is {}", packet.destination_port),
        Mismatch::Icmp => {
            let [kind, code] = packet.destination_port.to_be_bytes();
            format!("the ICMP type is {kind}, its code {code}")
        }
        Mismatch::Flags => {
            let mut text = "the flags are ".to_owned();
            packet::push_flags(&mut text, packet.tcp_flags);
            text
        }
        Mismatch::Established => "neither ACK nor RST is set".to_owned(),
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |number: u128| -> std::net::IpAddr {
            match self.version {
                4 => std::net::Ipv4Addr::from_bits(number as u32).into(),
                _ => std::net::Ipv6Addr::from_bits(number).into(),
            }
        };
        if self.first == self.last {
            return write!(f, "{}", address(self.first));
        }
        write!(f, "{} to {}", address(self.first), address(self.last))
    }
}

impl fmt::Display for Explanation {
    /// The packet, each line with why it does not match, and the decision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}: {}", self.filter, self.direction, self.packet)?;
        for step in &self.steps {
            match step.line {
                0 => write!(f, "       -  {}", step.text)?,
                line => write!(f, "{line:>8}  {}", step.text)?,
            }
            match &step.why_not {
                Some(why) => writeln!(f, "\n          no: {why}")?,
                None => writeln!(f, "\n          yes")?,
            }
        }
        let action = if self.verdict.accept {
            "accepted"
        } else {
            "denied"
        };
        let log = if self.verdict.log {
            ", and told to the log"
        } else {
            ""
        };
        match self.steps.last() {
            None => write!(f, "{action}{log}")?,
            Some(Step { line: 0, text, .. }) => {
                write!(f, "{action} by '{text}', not written in the file{log}")?
            }
            Some(step) => write!(f, "{action} by line {}{log}", step.line)?,
        }
        if !self.note.is_empty() {
            write!(f, ": {}", self.note)?;
        }
        Ok(())
    }
}
