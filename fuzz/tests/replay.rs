//! Replays every corpus, and some thousands of mutations of it, in the ordinary tests.
#![forbid(unsafe_code)]

use fuzz::mutate::Mutator;
use fuzz::{TARGETS, Target, corpus};

const SEED: u64 = 0x4845_4144_454e_4421;
const MUTATIONS: usize = 5_000;
/// Of a slow target.
const MUTATIONS_SLOW: usize = 1_500;

fn corpus_of(target: &Target) -> Vec<Vec<u8>> {
    let corpus = corpus::load(target).expect("the corpus is there");
    assert!(!corpus.is_empty(), "{} has a corpus", target.name);
    corpus
}

#[test]
fn every_corpus_replays() {
    for target in TARGETS {
        for input in corpus_of(target) {
            (target.run)(&input);
        }
    }
}

#[test]
fn every_prefix_of_every_corpus_replays() {
    for target in TARGETS {
        for input in corpus_of(target) {
            for len in 0..input.len() {
                (target.run)(&input[..len]);
            }
        }
    }
}

#[test]
fn seeded_mutations_of_every_corpus_replay() {
    for target in TARGETS {
        let mut mutator = Mutator::new(SEED, corpus_of(target), target.len_max);
        let mut input = Vec::new();
        let count = if target.is_slow {
            MUTATIONS_SLOW
        } else {
            MUTATIONS
        };
        for _ in 0..count {
            mutator.next_input(&mut input);
            (target.run)(&input);
        }
    }
}

#[test]
fn every_corpus_has_its_target() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    for entry in std::fs::read_dir(root).expect("fuzz/corpus is there") {
        let name = entry.expect("readable").file_name();
        let name = name.to_str().expect("a plain name");
        assert!(Target::find(name).is_some(), "{name} is a target");
    }
}
