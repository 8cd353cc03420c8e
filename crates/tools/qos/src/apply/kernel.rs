//! The kernel's queues: read, and changed in one system call.

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use reactor::namespace::Namespace;
use reactor::netlink::{Asked, Netlink};
use tc::compile::Attached;
use tc::{
    Abilities, Bpf, Cake, Change, CodelKind, Filter, FilterKind, FlowKeys, Handle, Message, Object,
    Qdisc, QdiscKind, Tree, Verb, canonical_us,
};

use super::programs::Programs;

const GET_QDISC: u16 = 38;
const GET_CLASS: u16 = 42;
const GET_FILTER: u16 = 46;

/// Where filters of an `ingress` or `clsact` discipline are: arriving, and leaving packets.
const OUTSIDE: [Handle; 2] = [Handle::ARRIVING, Handle(0xffff_fff3)];

/// There if the kernel tracks connections.
const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// The most classes whose own filters are read.
const CLASSES_MAX: usize = 4_096;

/// Kinds without filters.
const WITHOUT_FILTERS: [&str; 5] = ["pfifo", "bfifo", "codel", "pfifo_fast", "noqueue"];

/// A change for the interface with this index.
pub(super) type Wanted = (u32, Change);

/// A change that the kernel refused.
#[derive(Debug)]
pub(super) struct Failure {
    /// Its place among the changes.
    pub(super) place: usize,
    pub(super) error: io::Error,
    /// The kernel's explanation; may be empty.
    pub(super) text: String,
}

/// Access to queues. Tests put one between that refuses changes.
pub(super) trait Queues {
    /// The objects of an interface.
    fn read(&mut self, index: u32) -> Result<Tree>;

    /// Makes changes. Returns the first that the kernel refused.
    fn change(&mut self, changes: &[Wanted]) -> Result<Option<Failure>>;

    /// Makes the changes that the kernel takes. Returns those that it refused.
    fn attempt(&mut self, changes: &[Wanted]) -> Result<Vec<Failure>>;

    /// Lets go of the eBPF programs of the trees that were read. Until then they stay loaded, and their filters can be
    /// made again.
    fn release(&mut self);
}

/// The kernel of this network namespace.
pub(super) struct Kernel {
    pub(super) netlink: Netlink,
    pub(super) programs: Programs,
    /// Whether filters of classes are read too; headend makes none.
    pub(super) lists_all: bool,
}

impl Queues for Kernel {
    fn read(&mut self, index: u32) -> Result<Tree> {
        let mut tree = Tree::default();
        self.list(GET_QDISC, index, Handle(0), &mut tree)?;
        self.list(GET_CLASS, index, Handle(0), &mut tree)?;
        let mut places: Vec<Handle> = Vec::new();
        for qdisc in &tree.qdiscs {
            if qdisc.parent == Handle::INGRESS_PARENT {
                places.extend(OUTSIDE);
            } else if !WITHOUT_FILTERS.contains(&qdisc.kind.name()) {
                places.push(qdisc.handle);
            }
        }
        // `ingress` has no place for leaving packets, and lists those for arriving ones again.
        if matches!(tree.ingress(), Some(qdisc) if qdisc.kind == QdiscKind::Ingress) {
            places.retain(|place| *place != OUTSIDE[1]);
        }
        if self.lists_all {
            let classes = tree.classes.iter().take(CLASSES_MAX);
            places.extend(classes.map(|class| class.handle));
        }
        for place in places {
            self.list(GET_FILTER, index, place, &mut tree)?;
        }
        self.programs.hold(&tree);
        Ok(tree)
    }

    fn change(&mut self, changes: &[Wanted]) -> Result<Option<Failure>> {
        let asked = changes.iter().map(|(index, change)| {
            let program = self.programs.descriptor(change)?;
            let Message { kind, flags, body } = change.message(*index, program);
            Ok(Asked { kind, flags, body })
        });
        let asked = asked.collect::<Result<Vec<_>>>()?;
        let refused = self.netlink.change_all(&asked)?;
        Ok(refused.into_iter().next().map(|refused| Failure {
            place: refused.place,
            error: refused.error,
            text: refused.text,
        }))
    }

    fn attempt(&mut self, changes: &[Wanted]) -> Result<Vec<Failure>> {
        let (mut asked, mut places, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (index, change)) in changes.iter().enumerate() {
            match self.programs.descriptor(change) {
                Ok(program) => {
                    let Message { kind, flags, body } = change.message(*index, program);
                    asked.push(Asked { kind, flags, body });
                    places.push(place);
                }
                Err(error) => failures.push(Failure {
                    place,
                    error: io::Error::other(error.to_string()),
                    text: String::new(),
                }),
            }
        }
        let refused = self.netlink.change_all(&asked)?.into_iter();
        failures.extend(refused.filter_map(|refused| {
            Some(Failure {
                place: *places.get(refused.place)?,
                error: refused.error,
                text: refused.text,
            })
        }));
        Ok(failures)
    }

    fn release(&mut self) {
        self.programs.release();
    }
}

impl Kernel {
    /// The kernel of the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn open() -> Result<Self> {
        Ok(Self {
            netlink: Netlink::open().context("cannot open a netlink socket")?,
            programs: Programs::default(),
            lists_all: false,
        })
    }

    fn list(&mut self, kind: u16, index: u32, parent: Handle, tree: &mut Tree) -> Result<()> {
        // `struct tcmsg`.
        let words = [0, index, 0, parent.0, 0];
        let asked = Asked {
            kind,
            flags: 0,
            body: words.into_iter().flat_map(u32::to_ne_bytes).collect(),
        };
        let listed = self.netlink.list(&asked).context("cannot list queues")?;
        let found = listed
            .iter()
            .filter_map(|(kind, body)| tc::decode(*kind, body));
        for found in found.filter(|found| found.index == index) {
            tree.push(found.object);
        }
        Ok(())
    }
}

/// Whether the kernel tracks connections in this network namespace.
pub(super) fn tracks_connections() -> bool {
    Path::new(TRACKED).exists()
}

/// The modules of this kernel, tried in a network namespace made for it.
///
/// # Errors
/// A privilege is missing.
pub(super) fn abilities() -> Result<Abilities> {
    let namespace = Namespace::new()?;
    namespace.run(|| {
        let kernel = Kernel::open()?;
        let index = kernel.netlink.index("lo")?;
        let mut probe = Probe { kernel, index };
        let codel = CodelKind {
            limit: 10,
            target_us: canonical_us(5_000),
            interval_us: canonical_us(100_000),
            ecn: true,
            flows: 0,
            quantum: 0,
            memory: 0,
        };
        let fq_codel = CodelKind {
            flows: 16,
            quantum: 300,
            memory: 1 << 20,
            ..codel
        };
        let sfq = QdiscKind::Sfq {
            quantum: 1_514,
            limit: 127,
            perturb_s: 0,
        };
        let has_ifb = probe.kernel.netlink.add_ifb("ifb-probe");
        Ok(Abilities {
            htb: probe.has(HTB, None),
            fq_codel: probe.has(QdiscKind::FqCodel(fq_codel), None),
            codel: probe.has(QdiscKind::Codel(codel), None),
            sfq: probe.has(sfq, None),
            drr: probe.has(QdiscKind::Drr, None),
            ets: probe.has(ETS, None),
            flow: probe.has(HTB, Some(flow())),
            bpf: probe.runs_programs(),
            cake: probe.has(QdiscKind::Cake(CAKE), None),
            u32: probe.has(HTB, Some(anything())),
            u32_mark: probe.compares_marks(),
            conntrack: tracks_connections(),
            redirect: match has_ifb {
                Ok(index) => probe.redirects(index),
                Err(_) => false,
            },
        })
    })?
}

const HTB: QdiscKind = QdiscKind::Htb { default: 1 };

const ETS: QdiscKind = QdiscKind::Ets {
    bands: 2,
    quantum: 1_514,
};

const CAKE: Cake = Cake {
    rate: 125_000,
    diffserv: 3,
    flow_mode: 5,
    overhead: 0,
    mpu: 0,
    atm: false,
    rtt_us: 100_000,
    target_us: 5_000,
    memory: 1 << 20,
    nat: false,
    wash: false,
    ack_filter: false,
    ingress: false,
};

fn flow() -> Filter {
    let kind = FilterKind::Flow {
        keys: FlowKeys::Source,
        divisor: 2,
        base: Handle::new(1, 1),
    };
    Filter {
        parent: Handle::new(1, 0),
        priority: 1,
        protocol: 3,
        handle: 1,
        chain: 0,
        kind,
    }
}

fn anything() -> Filter {
    Filter {
        parent: Handle::new(1, 0),
        ..tc::compile::redirection(0, 1)
    }
}

/// `exit`.
const EXIT: u64 = u64::from_ne_bytes([0x95, 0, 0, 0, 0, 0, 0, 0]);

struct Probe {
    kernel: Kernel,
    index: u32,
}

impl Probe {
    /// Whether the kernel takes a discipline, and a filter of it.
    fn has(&mut self, kind: QdiscKind, filter: Option<Filter>) -> bool {
        let qdisc = Qdisc {
            handle: Handle::new(1, 0),
            parent: Handle::ROOT,
            added: None,
            kind,
            raw: None,
        };
        // A filter of its kind that has no class belongs to none.
        let filter = filter.map(|filter| match filter.kind {
            FilterKind::U32 { keys, mark, .. } => Filter {
                kind: FilterKind::U32 {
                    keys,
                    mark,
                    action: tc::Action::Class(Handle::new(1, 1)),
                },
                ..filter
            },
            _ => filter,
        });
        self.tries(Object::Qdisc(qdisc), filter)
    }

    /// Whether this process may load a program, and a filter runs it.
    fn runs_programs(&mut self) -> bool {
        // `r0 = 0; exit`: no class.
        let nothing = Attached {
            name: "headend-probe".to_owned(),
            parent: Handle::new(1, 0),
            instructions: vec![u64::from_ne_bytes([0xb7, 0, 0, 0, 0, 0, 0, 0]), EXIT],
            words: Vec::new(),
        };
        if self.kernel.programs.load(&[nothing]).is_err() {
            return false;
        }
        let kind = FilterKind::Bpf(Bpf {
            name: "headend-probe".to_owned(),
            class: None,
            is_direct: false,
            tag: None,
            id: None,
        });
        self.has(
            HTB,
            Some(Filter {
                handle: 1,
                kind,
                ..anything()
            }),
        )
    }

    /// Whether filters compare marks. Some kernels take such a filter, and leave the mark out.
    fn compares_marks(&mut self) -> bool {
        let mut filter = anything();
        filter.kind = FilterKind::U32 {
            keys: Vec::new(),
            mark: Some((1, 1)),
            action: tc::Action::Class(Handle::new(1, 1)),
        };
        let qdisc = Qdisc {
            handle: Handle::new(1, 0),
            parent: Handle::ROOT,
            added: None,
            kind: HTB,
            raw: None,
        };
        let change = |verb, object| (self.index, Change { verb, object });
        let add = [
            change(Verb::Add, Object::Qdisc(qdisc.clone())),
            change(Verb::Add, Object::Filter(filter.clone())),
        ];
        let delete = [change(Verb::Delete, Object::Qdisc(qdisc))];
        let added = self.kernel.change(&add);
        let read = self.kernel.read(self.index);
        let deleted = self.kernel.change(&delete);
        let has_mark =
            read.is_ok_and(|tree| tree.filters.iter().any(|found| found.is_like(&filter)));
        matches!((added, deleted), (Ok(None), Ok(None))) && has_mark
    }

    fn redirects(&mut self, to: u32) -> bool {
        let filter = tc::compile::redirection(to, 1);
        self.tries(Object::Qdisc(tc::compile::ingress()), Some(filter))
    }

    fn tries(&mut self, qdisc: Object, filter: Option<Filter>) -> bool {
        let add = |object| Change {
            verb: Verb::Add,
            object,
        };
        let mut changes = vec![(self.index, add(qdisc.clone()))];
        let filter = filter.map(|filter| (self.index, add(Object::Filter(filter))));
        changes.extend(filter);
        let is_refused = !matches!(self.kernel.change(&changes), Ok(None));
        let delete = Change {
            verb: Verb::Delete,
            object: qdisc,
        };
        let deleted = self.kernel.change(&[(self.index, delete)]);
        !is_refused && matches!(deleted, Ok(None))
    }
}
