//! `[kernel]`: what `headend qos apply` makes of the policy. `headend qos run` does not read it.

use settings::{Notes, Section};
use toml::de::DeTable;

/// The settings of `[kernel]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "switches of the file")]
pub struct Kernel {
    /// Whether the kernel's `cake` shapes, in place of `htb` with queues below it.
    pub cake: bool,
    /// The filters that choose the class.
    pub classifier: Filters,
    /// Whether hosts are those before NAT.
    pub nat: bool,
    /// Whether superfluous acknowledgements of TCP are dropped upstream. Only for `cake`.
    pub ack_filter: bool,
    /// Whether the DSCP of downstream packets is cleared. Only for `cake`.
    pub wash: bool,
}

/// The kernel's filters that choose the class of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filters {
    /// An eBPF program where the policy asks for more than the others can read, and for many rules.
    #[default]
    Auto,
    /// An eBPF program.
    Bpf,
    /// `u32`, and `flow` for hosts.
    U32,
}

/// Reads the section. `has_classes`: the file has sections that `cake` cannot have.
pub(super) fn read(root: &DeTable<'_>, has_classes: bool, notes: &Notes<'_>) -> Kernel {
    let mut section = Section::open(root, "kernel", notes);
    let queue = section.choice("queue", &[("htb", false), ("cake", true)]);
    let cake = queue.is_some_and(|queue| queue.value);
    let classifiers = [
        ("auto", Filters::Auto),
        ("bpf", Filters::Bpf),
        ("u32", Filters::U32),
    ];
    let classifier = section.choice("classifier", &classifiers);
    if let Some(given) = classifier.as_ref().filter(|_| cake) {
        let message = "cake has no classes, so nothing chooses one";
        let right = "give queue = \"htb\", or leave it out";
        notes.at(given.at, section.path("classifier"), (message, right));
    }
    let mut flag = |key: &'static str, needs_cake: bool| {
        let flag = section.flag(key);
        if let Some(flag) = flag.filter(|flag| needs_cake && flag.value && !cake) {
            let right = "give queue = \"cake\", or leave it out";
            notes.at(flag.at, section.path(key), ("only cake can do this", right));
        }
        flag.is_some_and(|flag| flag.value)
    };
    let kernel = Kernel {
        cake,
        classifier: classifier.map_or(Filters::Auto, |given| given.value),
        nat: flag("nat", false),
        ack_filter: flag("ack_filter", true),
        wash: flag("wash", true),
    };
    if let Some(queue) = queue.filter(|queue| queue.value && has_classes) {
        let message = "cake has no classes, and the file has [[first]] or [[class]]";
        let right = "give queue = \"htb\", or leave those sections out";
        notes.at(queue.at, section.path("queue"), (message, right));
    }
    section.finish();
    kernel
}
