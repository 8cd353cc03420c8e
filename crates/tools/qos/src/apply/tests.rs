//! Failures and ends after each message to the kernel.

use std::cell::Cell;
use std::io;

use anyhow::{Result, bail};
use qos::policy::Policy;
use reactor::namespace::Namespace;
use reactor::netlink::Netlink;
use tc::compile::{Attached, Place, compile, ingress, redirection};
use tc::{Abilities, Action, FilterKind, Handle, Object, Tree, changes};

use super::kernel::{Failure, Kernel, Queues, Wanted};
use super::outside::{Arriving, inside};
use super::transaction::{Half, Target, perform, restore};

const OLD: &str = r#"
[link]
up = "9mbit"
[[first]]
name = "ssh"
proto = "tcp"
port = 22
[[class]]
name = "work"
rate = "30%"
dscp = "af11"
"#;

/// Another rate, a class that gets classes below it, another filter, another queue.
const NEW: &str = r#"
[link]
up = "7mbit"
[[class]]
name = "work"
rate = "40%"
[[class]]
name = "web"
parent = "work"
rate = "10%"
queue = "fifo"
proto = "tcp"
dst_port = [80, 443]
"#;

/// What the kernel does after a number of changes.
#[derive(Clone, Copy)]
enum Then {
    /// It refuses the next one, and goes on.
    Refuse,
    /// The process is gone.
    Vanish,
}

/// A kernel that takes some changes as it should.
struct Faulty<'k> {
    kernel: &'k mut Kernel,
    then: Option<(usize, Then)>,
    /// Changes in the first call.
    count: Cell<usize>,
}

impl Queues for Faulty<'_> {
    fn read(&mut self, index: u32) -> Result<Tree> {
        self.kernel.read(index)
    }

    fn release(&mut self) {
        self.kernel.release();
    }

    fn attempt(&mut self, changes: &[Wanted]) -> Result<Vec<Failure>> {
        self.kernel.attempt(changes)
    }

    fn change(&mut self, changes: &[Wanted]) -> Result<Option<Failure>> {
        let Some((taken, then)) = self.then.take() else {
            return self.kernel.change(changes);
        };
        self.count.set(changes.len());
        let (before, after) = changes.split_at(taken.min(changes.len()));
        assert!(self.kernel.change(before)?.is_none());
        match then {
            Then::Refuse if !after.is_empty() => {
                // Those behind it may succeed or not.
                self.kernel.change(&after[1..])?;
                Ok(Some(Failure {
                    place: taken,
                    error: io::ErrorKind::OutOfMemory.into(),
                    text: "no more".to_owned(),
                }))
            }
            Then::Refuse => Ok(None),
            Then::Vanish => bail!("gone"),
        }
    }
}

fn tree(text: &str, with_redirection: Option<u32>) -> Tree {
    let place = Place {
        is_up: true,
        header: 14,
        is_redirected: false,
    };
    let abilities = Abilities {
        fq_codel: false,
        codel: false,
        sfq: false,
        drr: false,
        ets: false,
        bpf: false,
        cake: false,
        ..Abilities::ALL
    };
    let policy = Policy::parse(text).expect("a policy").0;
    let mut tree = compile(&policy, place, &abilities).expect("objects").tree;
    if let Some(index) = with_redirection {
        tree.push(Object::Qdisc(ingress()));
        tree.push(Object::Filter(redirection(index, 1)));
    }
    tree
}

/// Runs `work` with a kernel and the indices of two interfaces.
fn in_namespace(work: impl FnOnce(Kernel, [u32; 2]) + Send) {
    let namespace = Namespace::with_interface(("a", "b"), ([192, 0, 2, 1].into(), 24));
    let namespace = namespace.expect("root, or leave to make namespaces");
    namespace
        .run(|| {
            let netlink = Netlink::open().unwrap();
            let indices = ["a", "b"].map(|name| netlink.index(name).unwrap());
            drop(netlink);
            work(Kernel::open().unwrap(), indices);
        })
        .unwrap();
}

fn targets(index: u32, want: &Tree) -> Vec<Target> {
    vec![Target {
        name: "a".to_owned(),
        index,
        want: inside(want),
        arriving: arriving(want),
    }]
}

/// All of `want` is headend's.
fn arriving(want: &Tree) -> Arriving {
    let redirected = want.filters.iter().find_map(|filter| match filter.kind {
        FilterKind::U32 {
            action: Action::Redirect(to),
            ..
        } => Some(to),
        _ => None,
    });
    Arriving {
        // Interfaces of namespaces have small numbers.
        ifbs: (1..9).collect(),
        made: true,
        to: redirected,
    }
}

#[track_caller]
fn is(kernel: &mut Kernel, index: u32, want: &Tree) {
    let now = kernel.read(index).unwrap();
    assert_eq!(changes(&now, want), vec![], "{now:?}");
    assert_eq!(now.len(), want.len());
}

#[test]
fn a_refusal_after_any_message_leaves_what_was_there() {
    in_namespace(|mut kernel, [index, other]| {
        let trees = [Tree::default(), tree(OLD, None), tree(NEW, Some(other))];
        let mut tried = 0;
        for (old, new) in [(0, 1), (0, 2), (1, 2), (2, 1), (2, 0)] {
            let (old, new) = (&trees[old], &trees[new]);
            perform(&mut kernel, &targets(index, old)).unwrap();
            for taken in 0.. {
                let mut faulty = Faulty {
                    kernel: &mut kernel,
                    then: Some((taken, Then::Refuse)),
                    count: Cell::new(0),
                };
                let done = perform(&mut faulty, &targets(index, new));
                let is_past_the_end = taken >= faulty.count.get();
                if is_past_the_end {
                    done.unwrap();
                    is(&mut kernel, index, new);
                    break;
                }
                let error = format!("{:#}", done.unwrap_err());
                assert!(error.starts_with("nothing was changed: "), "{error}");
                assert!(error.contains("the kernel says: no more"), "{error}");
                is(&mut kernel, index, old);
                tried += 1;
            }
        }
        assert!(tried > 60, "{tried}");
    });
}

#[test]
fn an_end_after_any_message_is_mended_by_the_next_apply_or_remove() {
    in_namespace(|mut kernel, [index, other]| {
        let trees = [Tree::default(), tree(OLD, None), tree(NEW, Some(other))];
        let mut tried = 0;
        for (old, new) in [(0, 1), (0, 2), (1, 2), (2, 1), (2, 0)] {
            let (old, new) = (&trees[old], &trees[new]);
            for taken in 0.. {
                let mut count = 0;
                // Then comes `remove`, which restores the old queues; or `apply` with either policy.
                for mend in [&trees[0], old, new] {
                    perform(&mut kernel, &targets(index, old)).unwrap();
                    is(&mut kernel, index, old);
                    let mut dying = Faulty {
                        kernel: &mut kernel,
                        then: Some((taken, Then::Vanish)),
                        count: Cell::new(0),
                    };
                    // It cannot undo anything.
                    let now = dying.read(index).unwrap();
                    let wanted = changes(&now, new).into_iter();
                    let wanted: Vec<Wanted> = wanted.map(|change| (index, change)).collect();
                    assert!(dying.change(&wanted).is_err());
                    count = wanted.len();
                    perform(&mut kernel, &targets(index, mend)).unwrap();
                    is(&mut kernel, index, mend);
                    tried += 1;
                }
                if taken >= count {
                    break;
                }
            }
        }
        assert!(tried > 200, "{tried}");
    });
}

#[test]
fn the_kernels_own_words_are_in_the_message() {
    in_namespace(|mut kernel, [index, _]| {
        let mut want = tree(OLD, None);
        // The queue of a class that does not exist.
        want.qdiscs[1].parent = tc::Handle::new(1, 0x999);
        let error = perform(&mut kernel, &targets(index, &want)).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("a: cannot add qdisc pfifo "), "{error}");
        assert!(error.contains("the kernel says: "), "{error}");
        is(&mut kernel, index, &Tree::default());
    });
}

#[test]
fn a_program_that_the_kernel_refuses_is_named_with_the_verifiers_words() {
    in_namespace(|mut kernel, [index, _]| {
        // `exit` without a value.
        let program = Attached {
            name: "headend-bad".to_owned(),
            parent: Handle::new(1, 0),
            instructions: vec![u64::from_ne_bytes([0x95, 0, 0, 0, 0, 0, 0, 0])],
            words: Vec::new(),
        };
        let error = kernel.programs.load(&[program]).unwrap_err().to_string();
        for part in ["nothing was changed", "for 1:", "R0 !read_ok", "classifier"] {
            assert!(error.contains(part), "{error}");
        }
        is(&mut kernel, index, &Tree::default());
    });
}

#[test]
fn a_filter_comes_back_with_its_program_if_a_later_change_is_refused() {
    in_namespace(|mut kernel, [index, _]| {
        let place = Place {
            is_up: true,
            header: 14,
            is_redirected: false,
        };
        let compiled = |text: &str| {
            let policy = Policy::parse(text).expect("a policy").0;
            let abilities = Abilities {
                fq_codel: false,
                drr: false,
                ets: false,
                ..Abilities::ALL
            };
            compile(&policy, place, &abilities).expect("objects")
        };
        let old = compiled(OLD);
        kernel.programs.load(&old.programs).unwrap();
        perform(&mut kernel, &targets(index, &old.tree)).unwrap();
        is(&mut kernel, index, &old.tree);
        // Another process has only what the kernel lists.
        kernel.programs.load(&[]).unwrap();
        let before = kernel.read(index).unwrap();
        kernel.release();
        let new = compiled(NEW);
        kernel.programs.load(&new.programs).unwrap();
        let mut bad = new.tree.clone();
        bad.qdiscs[1].parent = Handle::new(1, 0x999);
        let error = perform(&mut kernel, &targets(index, &bad)).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("nothing was changed"), "{error}");
        is(&mut kernel, index, &before);
        perform(&mut kernel, &targets(index, &new.tree)).unwrap();
        is(&mut kernel, index, &new.tree);
    });
}

#[test]
fn a_program_that_gives_the_minor_number_needs_a_filter_that_gives_the_major_one() {
    in_namespace(|mut kernel, [index, _]| {
        let host = qos::classify::Map {
            divisor: 16,
            ..qos::classify::Map::new(qos::classify::Key::InnermostSrc)
        };
        let options = bpf::Options {
            answer: bpf::Answer::Minor,
            no_answer: bpf::Answer::NEXT,
            ..bpf::Options::default()
        };
        let program = bpf::emit(&qos::tree::Classifier::Map(host), &options).expect("a program");
        let name = "headend-minor".to_owned();
        let program = Attached {
            name: name.clone(),
            parent: Handle::new(1, 0),
            instructions: program.instructions().to_vec(),
            words: Vec::new(),
        };
        kernel.programs.load(&[program]).unwrap();
        let mut want = tree(OLD, None);
        want.filters.truncate(1);
        want.filters[0] = tc::Filter {
            parent: Handle::new(1, 0),
            priority: 1,
            protocol: 3,
            handle: 1,
            chain: 0,
            kind: tc::FilterKind::Bpf(tc::Bpf {
                name,
                class: Some(Handle::new(1, 0)),
                is_direct: true,
                tag: None,
                id: None,
            }),
        };
        // Class 1:2, of hosts whose address is 1 more than a multiple of 16.
        let mut class = want.classes[1].clone();
        class.handle = Handle::new(1, 2);
        want.push(Object::Class(class));
        perform(&mut kernel, &targets(index, &want)).unwrap();
        let socket = std::net::UdpSocket::bind("192.0.2.1:0").unwrap();
        socket.set_broadcast(true).unwrap();
        let sent = (0..9).filter(|_| socket.send_to(&[0; 100], "192.0.2.255:9").is_ok());
        assert_eq!(sent.count(), 9);
        let mut tc = std::process::Command::new("tc");
        let tc = tc.args(["-s", "class", "show", "dev", "a", "classid", "1:2"]);
        let output = String::from_utf8(tc.output().unwrap().stdout).unwrap();
        assert!(output.contains(" 9 pkt"), "{output}");
    });
}

/// Disciplines that an operator made, with a filter that runs an eBPF program.
fn operators(kernel: &mut Kernel, index: u32) -> Tree {
    let mut before = tree(OLD, None);
    let program = Attached {
        name: "theirs".to_owned(),
        parent: Handle::new(1, 0),
        // `r0 = 0; exit`.
        instructions: vec![
            u64::from_ne_bytes([0xb7, 0, 0, 0, 0, 0, 0, 0]),
            u64::from_ne_bytes([0x95, 0, 0, 0, 0, 0, 0, 0]),
        ],
        words: Vec::new(),
    };
    kernel.programs.load(&[program]).unwrap();
    before.push(Object::Filter(tc::Filter {
        parent: Handle::new(1, 0),
        priority: 900,
        protocol: 3,
        handle: 1,
        chain: 0,
        kind: FilterKind::Bpf(tc::Bpf {
            name: "theirs".to_owned(),
            class: None,
            is_direct: false,
            tag: None,
            id: None,
        }),
    }));
    perform(kernel, &targets(index, &before)).unwrap();
    // They are another program's.
    kernel.programs.load(&[]).unwrap();
    let before = kernel.read(index).unwrap();
    kernel.release();
    before
}

#[test]
fn what_the_kernel_refuses_is_left_out_and_named_while_the_rest_comes_back() {
    in_namespace(|mut kernel, [index, other]| {
        let before = operators(&mut kernel, index);
        let lost: Vec<&str> = (before.filters.iter())
            .filter_map(|filter| Object::Filter(filter.clone()).loss())
            .collect();
        assert_eq!(
            lost,
            ["its eBPF program is unloaded with it unless something else keeps it"]
        );
        perform(&mut kernel, &targets(index, &tree(NEW, Some(other)))).unwrap();
        let missing = restore(&mut kernel, &targets(index, &before)).unwrap();
        let [line] = missing.as_slice() else {
            panic!("{missing:?}");
        };
        assert!(
            line.starts_with(
                "a: filter bpf priority 900 of 1: was there and cannot be made again: "
            ),
            "{line}"
        );
        let mut want = before;
        want.filters.retain(|filter| filter.priority != 900);
        is(&mut kernel, index, &want);
    });
}

#[test]
fn an_undo_that_fails_is_told_from_one_that_does_not() {
    /// Refuses the first change, and everything afterwards.
    struct Stuck<'k>(&'k mut Kernel);

    impl Queues for Stuck<'_> {
        fn read(&mut self, index: u32) -> Result<Tree> {
            self.0.read(index)
        }

        fn change(&mut self, changes: &[Wanted]) -> Result<Option<Failure>> {
            let half = &changes[..changes.len() / 2];
            self.0.change(half)?;
            Ok(Some(Failure {
                place: half.len(),
                error: io::ErrorKind::OutOfMemory.into(),
                text: "no more".to_owned(),
            }))
        }

        fn attempt(&mut self, changes: &[Wanted]) -> Result<Vec<Failure>> {
            self.0.attempt(changes)
        }

        fn release(&mut self) {
            self.0.release();
        }
    }

    in_namespace(|mut kernel, [index, _]| {
        let wanted = targets(index, &tree(OLD, None));
        let error = perform(&mut Stuck(&mut kernel), &wanted).unwrap_err();
        assert!(error.downcast_ref::<Half>().is_some(), "{error:#}");
        let text = error.to_string();
        // The cause comes first.
        assert!(
            text.starts_with("the kernel refused a change: a: cannot add"),
            "{text}"
        );
        assert!(
            text.contains("undoing the other changes failed too"),
            "{text}"
        );
        // What is recorded puts it right.
        assert_eq!(
            restore(&mut kernel, &targets(index, &Tree::default())).unwrap(),
            [""; 0]
        );
        is(&mut kernel, index, &Tree::default());
        let mut bad = wanted;
        bad[0].want.qdiscs[1].parent = Handle::new(1, 0x999);
        let error = perform(&mut kernel, &bad).unwrap_err();
        assert!(error.downcast_ref::<Half>().is_none(), "{error:#}");
    });
}
