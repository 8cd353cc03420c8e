//! The comparisons.

use std::cell::Cell;

use bpf::{Answer, Link, Options, emit};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use qos::classifier::Classifier;
use qos::classify::{Key, KeySet, Map, Match};
use reactor::bpf::{Context, Program, ProgramKind};
use wire::flow::Keys;

use crate::build::{ethernet, extension, inner4, ipv4, ipv6, udp};
use crate::frames;
use crate::kernel::{NO_ANSWER, OPTIONS, Pair, hex, is_runnable, load, ours, with_tag};
use crate::policies;

/// Every key and set of keys, on every kind of frame.
#[test]
fn each_key_has_the_same_value_in_every_kind_of_frame() {
    let (whole, cut) = (frames::whole(), frames::cut());
    assert!(whole.len() + cut.len() > 5_000);
    for classifier in policies::fixed() {
        let Some(pair) = Pair::new(&classifier) else {
            return;
        };
        // The last set has every key: it alone looks at all cut frames.
        let step = if pair.what.contains("seed: 1,") {
            1
        } else {
            41
        };
        for frame in whole.iter().chain(cut.iter().step_by(step)) {
            pair.compare(frame, 3).unwrap();
        }
    }
}

#[test]
fn any_classifier_gives_the_same_class_for_nested_and_changed_frames() {
    let compared = Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 80,
        failure_persistence: None,
        max_shrink_iters: 150,
        ..Config::default()
    });
    let frames = || {
        let frame = prop_oneof![3 => frames::any_frame(), 1 => frames::random_frame()];
        proptest::collection::vec((frame, 0_u32..4), 100)
    };
    let outcome = runner.run(
        &(policies::any_classifier(), frames()),
        |(classifier, frames)| {
            let Some(pair) = Pair::new(&classifier) else {
                return Ok(());
            };
            for (frame, mark) in frames {
                compared.set(compared.get() + 1);
                pair.compare(&frame, mark).map_err(TestCaseError::fail)?;
            }
            Ok(())
        },
    );
    outcome.unwrap();
    eprintln!("{} frames compared", compared.get());
}

#[test]
fn a_tag_that_the_kernel_took_off_counts_as_the_first() {
    let classifier = policies::hash(KeySet::of(&Key::ALL), 0, 5);
    let program = emit(&classifier, &OPTIONS).unwrap();
    let ours = ours(&classifier);
    for tci in [0x0064_u16, 0xe007, 0] {
        let instructions = with_tag(tci, program.instructions());
        let Some(loaded) = load(ProgramKind::Classifier, &instructions, "with a tag") else {
            return;
        };
        for packet in frames::bare() {
            for frame in frames::links(&packet) {
                if !is_runnable(&frame) {
                    continue;
                }
                let mut tagged = frame[..12].to_vec();
                tagged.extend([0x81, 0]);
                tagged.extend(tci.to_be_bytes());
                tagged.extend(&frame[12..]);
                let expected = ours.class(&Keys::read_frame(&tagged));
                let found = loaded.run(&frame, Context::default(), 1).unwrap().value;
                assert_eq!(Some(found), expected, "{tci:#x} {}", hex(&frame));
            }
        }
    }
}

#[test]
fn packets_without_a_link_header_are_read_from_their_ip_header() {
    let options = Options {
        link: Link::Ip,
        ..OPTIONS
    };
    let classifier = policies::hash(KeySet::of(&Key::ALL), 0, 5);
    let program = emit(&classifier, &options).unwrap();
    let ours = ours(&classifier);
    let Some(loaded) = load(ProgramKind::IpOutput, program.instructions(), "on IP") else {
        return;
    };
    for frame in frames::whole() {
        // The kernel itself looks at the version of what it takes for IP.
        if frame[12..14] != [8, 0] || frame.len() < 34 {
            continue;
        }
        let expected = ours.class(&Keys::read(&frame[14..]));
        let found = loaded.run(&frame, Context::default(), 1).unwrap().value;
        assert_eq!(Some(found), expected, "{}", hex(&frame));
    }
}

#[test]
fn the_answer_is_a_full_class_a_priority_or_a_mark() {
    let frame = ethernet(&[], 0x0800, &inner4());
    let before = Context {
        mark: 9,
        priority: 8,
    };
    let some = Classifier::Map(Map {
        mask: 7,
        ..Map::new(Key::Src)
    });
    // 192.168.1.5 has 5 there, counted from class 1.
    let class = 6;
    let none = Classifier::Rules(Vec::new());
    let all = Classifier::Rules(vec![(Match::default(), 6)]);
    for (answer, value, context) in [
        (Answer::Class { major: 0 }, class, before),
        (Answer::Class { major: 0x8001 }, 0x8001_0000 | class, before),
        (
            Answer::Priority,
            0,
            Context {
                priority: class,
                ..before
            },
        ),
        (
            Answer::Mark,
            0,
            Context {
                mark: class,
                ..before
            },
        ),
    ] {
        let options = Options { answer, ..OPTIONS };
        for (classifier, value, context) in [
            (&some, value, context),
            (&all, value, context),
            (&none, 0, before),
        ] {
            let program = emit(classifier, &options).unwrap();
            let Some(loaded) = load(ProgramKind::Classifier, program.instructions(), "") else {
                return;
            };
            let outcome = loaded.run(&frame, before, 1).unwrap();
            assert_eq!(
                (outcome.value, outcome.context),
                (value, context),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn a_nested_class_is_in_the_priority_and_its_outer_class_is_returned() {
    let frame = ethernet(&[], 0x0800, &inner4());
    let before = Context {
        mark: 9,
        priority: 8,
    };
    let answer = Answer::Nested { major: 1 };
    for (class, value, priority) in [(0x30_0045, 0x1_0030, 0x30_0045), (0x1_0020, 0x1_0020, 8)] {
        let classifier = Classifier::Rules(vec![(Match::default(), class)]);
        let program = emit(&classifier, &Options { answer, ..OPTIONS }).unwrap();
        let Some(loaded) = load(ProgramKind::Classifier, program.instructions(), "") else {
            return;
        };
        let outcome = loaded.run(&frame, before, 1).unwrap();
        let context = Context { priority, ..before };
        assert_eq!((outcome.value, outcome.context), (value, context));
    }
}

/// Extension headers of 2,048 bytes each, up to the largest frame that the kernel runs programs on.
#[test]
fn headers_far_from_the_start_are_read() {
    let classifier = policies::hash(KeySet::PLAIN, 0, 5);
    let Some(pair) = Pair::new(&classifier) else {
        return;
    };
    let long = extension(6, 255, &udp(7, 8, &[0; 20]));
    let frame = ethernet(&[], 0x86dd, &ipv6(60, &long));
    pair.compare(&frame, 0).unwrap();
    assert_ne!(pair.run(&frame, 0).value, NO_ANSWER);
}

#[test]
fn a_program_reads_no_more_than_its_classifier_asks_for() {
    let length = |key| {
        let classifier = Classifier::Map(Map::new(key));
        emit(&classifier, &OPTIONS).unwrap().instructions().len()
    };
    assert!(length(Key::Mark) < 30, "{}", length(Key::Mark));
    assert!(length(Key::Vlan) < length(Key::Src));
    assert!(length(Key::Src) * 2 < length(Key::InnermostSrc));
}

#[test]
fn each_of_thousands_of_hosts_has_its_class() {
    const HOSTS: u16 = 9_000;
    let Some(pair) = Pair::new(&policies::hosts(HOSTS)) else {
        return;
    };
    let from = |source: [u8; 4]| {
        let packet = ipv4(source, [203, 0, 113, 9], 17, &udp(5_000, 443, &[0; 20]));
        ethernet(&[], 0x0800, &packet)
    };
    let steps = (0..HOSTS)
        .step_by(97)
        .chain([0, 1, 2_047, 2_048, HOSTS - 1, HOSTS, u16::MAX]);
    for host in steps {
        pair.compare(&from(policies::address(host)), 0).unwrap();
    }
    for other in [[0, 0, 0, 0], [10, 8, 255, 255], [199, 9, 0, 1], [255; 4]] {
        pair.compare(&from(other), 0).unwrap();
    }
    // In an inner discipline, without an access to the context for each host.
    let Classifier::Rules(mut rules) = policies::hosts(HOSTS) else {
        return;
    };
    for (_, class) in &mut rules {
        *class |= 0x30 << 16;
    }
    let answer = Answer::Nested { major: 1 };
    let program = emit(&Classifier::Rules(rules), &Options { answer, ..OPTIONS }).unwrap();
    let nested = Program::load(ProgramKind::Classifier, "nested", program.instructions());
    for host in [0, 1, 5_000, HOSTS - 1] {
        let frame = from(policies::address(host));
        let outcome = nested
            .as_ref()
            .unwrap()
            .run(&frame, Context::default(), 1)
            .unwrap();
        let class = (0x30 << 16) + 2 + u32::from(host);
        assert_eq!((outcome.value, outcome.context.priority), (0x1_0030, class));
    }
    let none = pair.run(&from([199, 9, 0, 1]), 0).value;
    assert_eq!(none, 0x7ffe, "the rule after the hosts");
}

/// Instructions that a verifier may follow: 24,000 on Linux 6.18, and a quarter more on 6.1.
const EFFORT_MAX: u32 = 36_000;

/// The verifier takes about 2 us for an instruction: loading a program is most of the time of `headend qos apply`.
#[test]
fn the_verifier_follows_few_paths() {
    let effort = |classifier: &Classifier| {
        let program = emit(classifier, &OPTIONS).expect("a program");
        match Program::effort(ProgramKind::Classifier, program.instructions()) {
            Ok(effort) => effort.map(|effort| effort.instructions),
            Err(error) if error.is_forbidden() => None,
            Err(error) => panic!("{classifier:?}: {error}"),
        }
    };
    let all = policies::fixed()
        .into_iter()
        .chain([policies::neighbours()]);
    for classifier in all {
        let found = effort(&classifier);
        assert!(
            found.is_none_or(|found| found < EFFORT_MAX),
            "{found:?} for {classifier:?}"
        );
    }
    let [few, many] = [16, 256].map(|hosts| effort(&policies::hosts(hosts)));
    if let (Some(few), Some(many)) = (few, many) {
        assert!(few < EFFORT_MAX, "{few}");
        // The rules are followed once, and not once for each kind of tunnel.
        assert!(many - few < 240 * 40, "{few} and {many}");
    }
}
