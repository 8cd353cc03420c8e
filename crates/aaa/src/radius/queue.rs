//! The attributes of an Access-Accept or a CoA-Request that are about queues (RFC 2865, sections 5.11 and 5.26): rates,
//! templates and links, in our own and other vendors' formats; and the one that names a walled garden. docs/radius.md is
//! their reference.
//!
//! For each part the strongest attribute decides, whatever their order: our own, Mikrotik-Rate-Limit, WISPr for rates;
//! our own, Cisco's for templates. A value that cannot be read is left out and reported. Start reading at `Reader`.

use core::fmt;

use wire::radius::Attribute;
use wire::radius::vendor::{self, VendorSpecific, cisco, mikrotik, wispr};

use crate::change::Walled;
use crate::queue::{self, Queue, RATE_MAX, Way};

/// Our own attributes, below the vendor number of the configuration.
pub mod own {
    /// The template's name.
    pub const TEMPLATE: u8 = 1;
    /// The rate down, a text such as `20mbit`, or `none`.
    pub const RATE_DOWN: u8 = 2;
    /// The rate up.
    pub const RATE_UP: u8 = 3;
    /// The shared link's name.
    pub const LINK: u8 = 4;
    /// The walled garden's name, or `none`.
    pub const GARDEN: u8 = 5;
    /// In accounting records: packets to the subscriber that its queue dropped.
    pub const DROPS_DOWN: u8 = 16;
    /// Packets from the subscriber that its queue dropped.
    pub const DROPS_UP: u8 = 17;
    /// Packets to the subscriber that its queue marked.
    pub const MARKS_DOWN: u8 = 18;
    /// Packets from the subscriber that its queue marked.
    pub const MARKS_UP: u8 = 19;
}

/// How attributes about queues are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueAttributes {
    /// The vendor number of our own attributes. headend has no registered number.
    pub vendor: u32,
    /// Whether a value that cannot be read rejects the subscriber.
    pub strict: bool,
}

impl Default for QueueAttributes {
    fn default() -> Self {
        Self {
            vendor: vendor::EXAMPLE,
            strict: false,
        }
    }
}

/// An attribute about queues that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The attribute's name.
    pub attribute: &'static str,
    /// What is wrong with its value.
    pub why: Box<str>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.attribute, self.why)
    }
}

/// Most attributes that are reported as left out; one Access-Accept has room for hundreds.
const LEFT_OUT_MAX: usize = 8;

/// Collects what the attributes of one Access-Accept or CoA-Request say.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    config: QueueAttributes,
    /// By strength: our own attributes, then those of others.
    own: Queue,
    mikrotik: Queue,
    other: Queue,
    /// The walled garden: that of our own attribute, or else that of a Filter-Id.
    pub(crate) garden: Option<Walled>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Why a value cannot be read.
type Wrong = Box<str>;

impl Reader {
    pub(crate) fn new(config: QueueAttributes) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// What the attributes come to.
    pub(crate) fn finish(&mut self) -> Queue {
        let mut queue = core::mem::take(&mut self.other);
        queue.replace_with(&self.mikrotik);
        queue.replace_with(&self.own);
        queue
    }

    /// A Filter-Id that starts with `queue:` names a template, and one that starts with `garden:` a walled garden.
    /// Returns whether it names one of these.
    pub(crate) fn filter_id(&mut self, text: &str) -> bool {
        if let Some(name) = text.strip_prefix("garden:") {
            match Walled::read(name) {
                Ok(garden) => _ = self.garden.get_or_insert(garden),
                Err(why) => self.leave_out("Filter-Id", why.into()),
            }
            return true;
        }
        let Some(name) = text.strip_prefix("queue:") else {
            return false;
        };
        match queue::name(name) {
            Ok(name) => {
                for template in &mut self.other.templates {
                    template.get_or_insert_with(|| name.clone());
                }
            }
            Err(why) => self.leave_out("Filter-Id", why.into()),
        }
        true
    }

    /// Reads a Vendor-Specific attribute. Returns how many attributes in it are about something else.
    pub(crate) fn vendor_specific(&mut self, value: &[u8]) -> u64 {
        let Some(parsed) = VendorSpecific::parse(value) else {
            return 1;
        };
        let vendor = parsed.vendor;
        let is_ours = [
            vendor::CISCO,
            vendor::WISPR,
            vendor::MIKROTIK,
            self.config.vendor,
        ];
        if !is_ours.contains(&vendor) {
            return 1;
        }
        let mut ignored = 0;
        for attribute in parsed.attributes() {
            let taken = attribute.and_then(|one| self.take(vendor, one));
            match taken {
                Some((_, Ok(()))) => {}
                Some((name, Err(why))) => self.leave_out(name, why),
                None => ignored += 1,
            }
        }
        ignored
    }

    fn leave_out(&mut self, attribute: &'static str, why: Wrong) {
        if self.left_out.len() < LEFT_OUT_MAX {
            self.left_out.push(LeftOut { attribute, why });
        }
    }

    /// Takes one attribute of a vendor: its name and whether it can be read. `None` if it is about something else.
    fn take(
        &mut self,
        vendor: u32,
        attribute: Attribute<'_>,
    ) -> Option<(&'static str, Result<(), Wrong>)> {
        let kind = attribute.kind;
        if vendor == self.config.vendor {
            return self.take_own(attribute);
        }
        Some(match (vendor, kind) {
            (vendor::WISPR, wispr::BANDWIDTH_MAX_UP) => (
                "WISPr-Bandwidth-Max-Up",
                bandwidth(attribute)
                    .map(|rate| self.other.rates_bps[Way::Up as usize] = Some(rate)),
            ),
            (vendor::WISPR, wispr::BANDWIDTH_MAX_DOWN) => (
                "WISPr-Bandwidth-Max-Down",
                bandwidth(attribute)
                    .map(|rate| self.other.rates_bps[Way::Down as usize] = Some(rate)),
            ),
            (vendor::MIKROTIK, mikrotik::RATE_LIMIT) => (
                "Mikrotik-Rate-Limit",
                text(attribute)
                    .and_then(rate_limit)
                    .map(|rates| self.mikrotik.rates_bps = rates),
            ),
            (vendor::CISCO, cisco::POLICY_UP) => {
                ("Cisco-Policy-Up", self.policy(attribute, Way::Up))
            }
            (vendor::CISCO, cisco::POLICY_DOWN) => {
                ("Cisco-Policy-Down", self.policy(attribute, Way::Down))
            }
            (vendor::CISCO, cisco::AV_PAIR) => {
                let pair = core::str::from_utf8(attribute.value).ok()?;
                let (name, policy) = pair.split_once('=')?;
                let way = match name.strip_prefix("ip:").unwrap_or(name) {
                    "sub-qos-policy-in" => Way::Up,
                    "sub-qos-policy-out" => Way::Down,
                    _ => return None,
                };
                let read = queue::name(policy.trim()).map_err(Into::into);
                let taken = read.map(|name| self.other.templates[way as usize] = Some(name));
                ("Cisco-AVPair", taken)
            }
            _ => return None,
        })
    }

    fn take_own(&mut self, attribute: Attribute<'_>) -> Option<(&'static str, Result<(), Wrong>)> {
        let own = &mut self.own;
        let rate = |attribute| {
            let read = |text: &str| queue::rate(text).map_err(Into::into);
            text(attribute).and_then(read)
        };
        Some(match attribute.kind {
            own::TEMPLATE => {
                let read = name(attribute);
                let taken = read.map(|name| {
                    *own = core::mem::take(own).with_template(Some(&name));
                });
                ("Headend-Template", taken)
            }
            own::RATE_DOWN => {
                let taken =
                    rate(attribute).map(|rate| own.rates_bps[Way::Down as usize] = Some(rate));
                ("Headend-Rate-Down", taken)
            }
            own::RATE_UP => {
                let taken =
                    rate(attribute).map(|rate| own.rates_bps[Way::Up as usize] = Some(rate));
                ("Headend-Rate-Up", taken)
            }
            own::LINK => {
                let taken = name(attribute).map(|name| own.link = Some(name));
                ("Headend-Link", taken)
            }
            own::GARDEN => {
                let read = text(attribute).and_then(|text| Walled::read(text).map_err(Into::into));
                let taken = read.map(|garden| self.garden = Some(garden));
                ("Headend-Garden", taken)
            }
            _ => return None,
        })
    }

    fn policy(&mut self, attribute: Attribute<'_>, way: Way) -> Result<(), Wrong> {
        self.other.templates[way as usize] = Some(name(attribute)?);
        Ok(())
    }
}

fn text(attribute: Attribute<'_>) -> Result<&str, Wrong> {
    let text = core::str::from_utf8(attribute.value);
    text.map_err(|_| "is no text in UTF-8".into())
}

fn name(attribute: Attribute<'_>) -> Result<Box<str>, Wrong> {
    text(attribute).and_then(|text| queue::name(text).map_err(Into::into))
}

/// A rate of WISPr in bits per second; 0: no limit.
fn bandwidth(attribute: Attribute<'_>) -> Result<u64, Wrong> {
    match attribute.integer() {
        Some(rate) => checked(u64::from(rate)),
        None => {
            let octets = attribute.value.len();
            Err(format!("has {octets} octets; it must have 4").into())
        }
    }
}

/// A rate that queues can have: 0, or one in their range.
fn checked(bits: u64) -> Result<u64, Wrong> {
    if bits == 0 {
        return Ok(0);
    }
    queue::rate(&bits.to_string()).map_err(Into::into)
}

/// Reads a Mikrotik-Rate-Limit: `rx[/tx] [burst [threshold [time [priority [minimum]]]]]`, each a pair `rx[/tx]` but the
/// priority. Seen from the router: rx is up, tx is down. Only the first pair has an effect here. Returns the rates down
/// and up.
fn rate_limit(text: &str) -> Result<[Option<u64>; 2], Wrong> {
    const PARTS: [&str; 6] = [
        "rate",
        "burst rate",
        "threshold",
        "time",
        "priority",
        "minimum",
    ];
    let mut words = text.split_ascii_whitespace();
    let rate = words
        .next()
        .ok_or("is empty; it must be such as \"5M/20M\"")?;
    for (&part, word) in PARTS[1..].iter().zip(&mut words) {
        let fits = match part {
            "priority" => word
                .parse()
                .is_ok_and(|priority: u8| (1..=8).contains(&priority)),
            _ => pair(word).is_ok(),
        };
        if !fits {
            return Err(format!("{word:?} is no {part}").into());
        }
    }
    if let Some(word) = words.next() {
        return Err(format!("has more than {} parts, from {word:?} on", PARTS.len()).into());
    }
    let [rx, tx] = pair(rate)?;
    Ok([Some(checked(tx)?), Some(checked(rx)?)])
}

/// A number for each direction; the second is as the first if it is left out.
fn pair(word: &str) -> Result<[u64; 2], Wrong> {
    let (rx, tx) = word.split_once('/').unwrap_or((word, word));
    let number = |text: &str| {
        let wrong = || -> Wrong { format!("{text:?} is no number, with k or M behind it").into() };
        let (digits, unit) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
            Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
            _ => (text, 1),
        };
        if digits.is_empty() || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let bits = number.checked_mul(unit).filter(|&bits| bits <= RATE_MAX);
        bits.ok_or_else(wrong)
    };
    Ok([number(rx)?, number(tx)?])
}

#[cfg(test)]
mod tests;
