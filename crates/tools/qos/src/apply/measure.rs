//! The time of `apply` without its process, for `headend bench qos`. Everything happens in a network namespace made for it.

use anyhow::{Context, Result, ensure};
use qos::policy::Policy;
use reactor::clock;
use reactor::namespace::Namespace;
use tc::compile::{Place, compile};
use tc::{Change, Class, ClassKind, Handle, Object, Qdisc, QdiscKind, Speed, Tree, Verb, changes};

use super::kernel::{self, Kernel, Queues, Wanted};
use super::outside::Arriving;
use super::transaction::{Target, differences, perform};

/// Milliseconds of each step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// Disciplines, classes and filters.
    pub objects: usize,
    /// The verifier's time for the programs.
    pub load_ms: f64,
    /// Reading what is there, comparing, changing, and reading back.
    pub apply_ms: f64,
    /// The same for a change of one class.
    pub change_ms: f64,
    /// Sending the messages of the first tree, without reading anything.
    pub floor_ms: f64,
    /// Sending the message for one class, without reading anything.
    pub floor_change_ms: f64,
}

const POLICY: &str =
    "[link]\nup = \"90mbit\"\n[[first]]\nname = \"ssh\"\nproto = \"tcp\"\nport = 22\n";

/// A policy with a class for each of `hosts` hosts, and rules that name them.
///
/// # Errors
/// A privilege is missing, or the kernel refused something.
pub fn hosts(hosts: u32) -> Result<Times> {
    let policy = |rate: u32| {
        let mut text = POLICY.to_owned();
        for host in 0..hosts {
            let [_, _, high, low] = host.to_be_bytes();
            let rate = if host == 0 { rate } else { 20 };
            text.push_str(&format!(
                "[[class]]\nname = \"h{host}\"\nrate = \"{rate}kbit\"\nhost = \"10.9.{high}.{low}\"\nqueue = \"pfifo\"\n"
            ));
        }
        Policy::parse(&text).map(|(policy, _)| policy)
    };
    let abilities = kernel::abilities()?;
    let place = Place {
        is_up: true,
        header: 14,
        is_redirected: false,
    };
    let both = [policy(20), policy(30)].map(|policy| {
        let policy = policy.map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        anyhow::Ok(compile(&policy, place, &abilities)?)
    });
    let [old, new] = both;
    let (old, new) = (old?, new?);
    in_namespace(|kernel| {
        let begun = clock::now();
        kernel.programs.load(&old.programs)?;
        let load_ms = ms_since(begun);
        Ok(Times {
            load_ms,
            ..times(kernel, &old.tree, &new.tree)?
        })
    })
}

/// A tree of `classes` classes of `htb`, each below one of a hundred others.
///
/// # Errors
/// As [`hosts`].
pub fn classes(classes: u16) -> Result<Times> {
    let (old, new) = (tree(classes, 1_000), tree(classes, 2_000));
    in_namespace(|kernel| times(kernel, &old, &new))
}

fn tree(classes: u16, rate_of_last: u64) -> Tree {
    const ABOVE: u16 = 100;
    let mut tree = Tree::default();
    tree.push(Object::Qdisc(Qdisc {
        handle: Handle::new(1, 0),
        parent: Handle::ROOT,
        added: None,
        kind: QdiscKind::Htb { default: 0 },
        raw: None,
    }));
    for minor in 1..=classes {
        let rate = if minor == classes {
            rate_of_last
        } else {
            1_000
        };
        let speed = Speed {
            rate,
            burst_ticks: Speed::ticks(rate, 3_000),
            overhead: 0,
            mpu: 0,
            atm: false,
        };
        let parent = if minor <= ABOVE {
            0
        } else {
            (minor - 1) % ABOVE + 1
        };
        tree.push(Object::Class(Class {
            handle: Handle::new(1, minor),
            parent: Handle::new(1, parent),
            kind: ClassKind::Htb {
                rate: speed,
                ceil: speed,
                quantum: 1_514,
                prio: 0,
            },
        }));
    }
    tree
}

fn in_namespace<T: Send>(work: impl FnOnce(&mut Kernel) -> Result<T> + Send) -> Result<T> {
    let namespace = Namespace::with_interface(("a", "b"), ([192, 0, 2, 1].into(), 24))?;
    namespace.run(|| work(&mut Kernel::open()?))?
}

fn times(kernel: &mut Kernel, old: &Tree, new: &Tree) -> Result<Times> {
    let index = kernel.netlink.index("a")?;
    let delete = |kernel: &mut Kernel| -> Result<()> {
        let root = old.root().context("a tree")?.clone();
        send(
            kernel,
            index,
            vec![change(Verb::Delete, Object::Qdisc(root))],
        )
    };
    let all = changes(&Tree::default(), old);
    let one = changes(old, new);
    let begun = clock::now();
    send(kernel, index, all)?;
    let floor_ms = ms_since(begun);
    let begun = clock::now();
    send(kernel, index, one)?;
    let floor_change_ms = ms_since(begun);
    delete(kernel)?;
    let begun = clock::now();
    put(kernel, index, old)?;
    let apply_ms = ms_since(begun);
    let begun = clock::now();
    put(kernel, index, new)?;
    let change_ms = ms_since(begun);
    delete(kernel)?;
    Ok(Times {
        objects: old.len(),
        load_ms: 0.0,
        apply_ms,
        change_ms,
        floor_ms,
        floor_change_ms,
    })
}

fn change(verb: Verb, object: Object) -> Change {
    Change { verb, object }
}

fn put(kernel: &mut Kernel, index: u32, want: &Tree) -> Result<()> {
    let mut target = Target {
        name: "a".to_owned(),
        index,
        want: want.clone(),
        arriving: Arriving::default(),
    };
    perform(kernel, std::slice::from_ref(&target))?;
    let different = differences(kernel, &mut target)?;
    ensure!(
        different.is_empty(),
        "not as asked: {}",
        different.join(", ")
    );
    Ok(())
}

fn send(kernel: &mut Kernel, index: u32, changes: Vec<Change>) -> Result<()> {
    let wanted: Vec<Wanted> = changes.into_iter().map(|one| (index, one)).collect();
    let refused = kernel.change(&wanted)?;
    ensure!(refused.is_none(), "the kernel refused {refused:?}");
    Ok(())
}

fn ms_since(begun: base::Instant) -> f64 {
    clock::now().since(begun).as_secs_f64() * 1e3
}
