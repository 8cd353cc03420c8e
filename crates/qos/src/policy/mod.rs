//! The operator's policy file: parses its text and builds the queueing disciplines. docs/qos-policy.md is its
//! reference.
//!
//! ```text
//! let (policy, advice) = Policy::parse(text)?;     // all faults at once, each with line, column, key and remedy
//! let tree = Tree::new(&policy.up_spec(), seed, now)?;
//! let length = policy.overhead().on_line(ip_length);
//! ```
//!
//! No I/O: the caller reads the file and prints the faults and the advice.

mod build;
mod classes;
mod kernel;
mod link;
mod rates;
mod rules;
mod shape;
#[cfg(test)]
mod tests;

use base::Instant;
use settings::{Faults, Notes};
use toml::de::DeTable;

use crate::tree::{Overhead, Spec, Tree};
use crate::units;
use classes::{Class, First};
use link::Link;
use shape::{Shape, is_same};
use units::Rate;

pub use kernel::{Filters, Kernel};
pub use link::OVERHEADS;
pub use rates::{RATE_MAX, RateError};

/// The sections of the file.
const SECTIONS: [&str; 5] = ["link", "shape", "first", "class", "kernel"];
/// Maximum number of `[[class]]` sections.
const CLASSES_MAX: usize = 16_000;

/// The operator's policy for one link.
#[derive(Debug, Clone)]
pub struct Policy {
    link: Link,
    shape: Shape,
    firsts: Vec<First>,
    classes: Vec<Class>,
    kernel: Kernel,
}

impl Policy {
    /// Parses a policy. Returns it with advice on settings that are valid but may be unintended.
    ///
    /// # Errors
    /// Its faults, in the order of the text.
    pub fn parse(text: &str) -> Result<(Policy, Faults), Faults> {
        let notes = Notes::new(text);
        let policy = settings::document(&notes).map(|root| read(&root, &notes));
        notes.finish(policy)
    }

    /// The upload rate in bits per second. `None`: this direction is not shaped.
    #[must_use]
    pub fn up_bps(&self) -> Option<u64> {
        self.link.up.map(|rate| rate.value)
    }

    /// The download rate in bits per second. `None`: this direction is not shaped.
    #[must_use]
    pub fn down_bps(&self) -> Option<u64> {
        self.link.down.map(|rate| rate.value)
    }

    /// The bytes that the link layer adds to each packet.
    #[must_use]
    pub fn overhead(&self) -> Overhead {
        self.link.overhead
    }

    /// Length of the longest IP packet, in bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.link.mtu
    }

    /// How `headend qos apply` uses the kernel's queues.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Whether the template prioritises calls and games without a rule.
    #[must_use]
    pub fn is_gamer(&self) -> bool {
        self.shape.template.is_gamer()
    }

    /// The name of class "1:`minor`", the same in both directions: `link`, `first`, `rest`, or a section's name.
    #[must_use]
    pub fn class_name(&self, minor: u16) -> Option<&str> {
        build::name_of(self, minor)
    }

    /// The name of the section that each rule of [`Policy::up_spec`] or [`Policy::down_spec`] comes from, in the order
    /// of the rules. Rules of a template have the template's name.
    #[must_use]
    pub fn rule_names(&self, is_up: bool) -> Vec<&str> {
        build::rule_names(self, is_up)
    }

    /// The disciplines for uploads. Lengths are in bytes on the line, computed by [`Policy::overhead`].
    #[must_use]
    pub fn up_spec(&self) -> Spec {
        build::spec(self, true)
    }

    /// The disciplines for downloads.
    #[must_use]
    pub fn down_spec(&self) -> Spec {
        build::spec(self, false)
    }
}

fn read(root: &DeTable<'_>, notes: &Notes<'_>) -> Policy {
    settings::only_sections(root, 0, &SECTIONS, notes);
    let link = link::read(root, notes);
    let mut shape = shape::read(root, notes);
    let gives_share = root
        .get("shape")
        .and_then(|shape| shape.get_ref().as_table())
        .is_some_and(|shape| shape.contains_key("first_share"));
    if shape.template.is_gamer() && !gives_share {
        shape.first_share = 500;
    }
    let (firsts, classes) = classes::read(root, notes);
    let has_classes = root.contains_key("first") || root.contains_key("class");
    let policy = Policy {
        link,
        shape,
        firsts,
        classes,
        kernel: kernel::read(root, has_classes, notes),
    };
    check(&policy, root, notes);
    policy
}

/// Checks rules that concern several sections.
fn check(policy: &Policy, root: &DeTable<'_>, notes: &Notes<'_>) {
    let place_of = |name: &str| root.get(name).map_or(0, |value| value.span().start);
    let is_unshaped = policy.shape.template.is_none();
    if is_unshaped {
        for name in ["first", "class"] {
            if root.contains_key(name) {
                let message = "has no effect: the template \"none\" orders nothing";
                notes.at(place_of(name), name, (message, "use the template \"home\""));
            }
        }
        return;
    }
    if !root.contains_key("link") {
        let right = "give [link] with up = \"2.3mbit\", down = \"19mbit\" or both";
        notes.at(0, "link", ("is missing", right));
    } else if policy.link.up.is_none() && policy.link.down.is_none() && notes.is_empty() {
        let right = "give up = \"2.3mbit\", down = \"19mbit\" or both, or the template \"none\"";
        notes.at(place_of("link"), "link", ("has neither up nor down", right));
    }
    let own_shares = policy.firsts.iter().filter(|first| first.share.is_some());
    for (name, count, most) in [
        ("class", policy.classes.len(), CLASSES_MAX),
        ("first", own_shares.count(), build::OWN_SHARES_MAX),
    ] {
        if count > most {
            let message = format!("there are more than {most} with a class of their own");
            notes.at(place_of(name), name, (message, "give fewer"));
            return;
        }
    }
    for (rate, is_up) in [(policy.link.up, true), (policy.link.down, false)] {
        let Some(rate) = rate.map(|rate| rate.value) else {
            continue;
        };
        let firsts = build::firsts_bps(policy, rate);
        if firsts > rate {
            let message = format!("the shares come to {} of {}", Rate(firsts), Rate(rate));
            let right = "lower first_share or the sections' own shares";
            notes.advise(place_of("first"), "first", (message, right));
        }
        classes::check_sums(rate, is_up, firsts, &policy.classes, notes);
        check_limits(policy, rate, is_up, place_of("shape"), notes);
        let spec = build::spec(policy, is_up);
        if notes.is_empty()
            && let Err(error) = Tree::new(&spec, 0, Instant::ZERO)
        {
            let key = if policy.classes.is_empty() {
                "shape"
            } else {
                "class"
            };
            notes.at(place_of(key), key, (error.to_string(), ""));
        }
    }
}

/// Reports queues that are too long or too short, and bursts smaller than one packet.
fn check_limits(policy: &Policy, rate: u64, is_up: bool, shape_at: usize, notes: &Notes<'_>) {
    let mtu = policy.overhead().on_line(policy.mtu());
    let direction = if is_up { "up" } else { "down" };
    if let Some(burst) = policy.shape.burst.filter(|burst| burst.value < mtu.into()) {
        let message =
            format!("is smaller than a packet on the line ({mtu} octets): it counts as that");
        let right = format!(
            "leave it out, or give a packet and what the rate carries in a millisecond: {}",
            crate::htb::burst_of(rate, mtu)
        );
        notes.advise(burst.at, "shape.burst", (message, right));
    }
    let shape_queue = policy.shape.queue();
    let shape_limit = policy.shape.limit.map(|limit| (limit.at, limit.value));
    let mut queues = vec![(
        "shape.limit".to_owned(),
        shape_queue,
        shape_limit,
        shape_at,
        rate,
    )];
    for (place, class) in (1..).zip(&policy.classes) {
        if !class.is_parent && class.directions[usize::from(!is_up)] {
            let queue = class.queue.unwrap_or(shape_queue);
            let limit = class.limit.map(|limit| (limit.at, limit.value));
            let inherited = shape_limit.filter(|_| is_same(queue, shape_queue));
            if limit.is_none() && inherited.is_some() {
                continue;
            }
            let slowest = class.rate.value.of(rate);
            let key = format!("class[{place}].limit");
            queues.push((key, queue, limit, class.rate.at, slowest));
        }
    }
    for (key, queue, limit, at, rate) in queues {
        let is_given = limit.is_some();
        let (at, limit) = limit.unwrap_or((at, queue.offer().limit));
        let packets = limit.packets(rate, mtu);
        let wait_ms = u128::from(packets) * u128::from(mtu) * 8_000 / u128::from(rate.max(1));
        if is_given && packets < 2 {
            let message =
                format!("{packets} packets {direction}: a sender of two packets at once loses one");
            notes.advise(at, &key, (message, "give 2 packets or more"));
        } else if !queue.offer().bounds_delay && wait_ms > 1_000 {
            let message = format!(
                "{packets} packets take {wait_ms} ms {direction} at {}: everyone waits that long behind a full queue",
                Rate(rate)
            );
            let right = "give limit = \"200ms\", or use the template \"home\"";
            notes.advise(at, &key, (message, right));
        }
    }
}
