//! A scenario over many seeds, re-run from one.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Names the one seed to run.
const SEED_VAR: &str = "HEADEND_SIM_SEED";

/// Names how many seeds to run instead of the number in the test.
const COUNT_VAR: &str = "HEADEND_SIM_SEEDS";

/// Runs `scenario` with the seeds `0..n`.
///
/// The environment may ask for one seed (`HEADEND_SIM_SEED=17`) or for more of them
/// (`HEADEND_SIM_SEEDS=100000`).
///
/// # Panics
/// The scenario did: which seed it was and how to run it again goes to standard
/// error first, after what the scenario's worlds print.
pub fn seeds(n: u64, scenario: impl Fn(u64)) {
    let var = |name| std::env::var(name).ok();
    let range = choose(n, var(SEED_VAR).as_deref(), var(COUNT_VAR).as_deref());
    for seed in range {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scenario(seed))) {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or_default();
            eprintln!("seed {seed} failed; to run it again: {SEED_VAR}={seed} cargo test {test}");
            resume_unwind(panic);
        }
    }
}

fn choose(n: u64, seed: Option<&str>, count: Option<&str>) -> Range<u64> {
    let number = |name, text: &str| -> u64 {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text:?}"))
    };
    match (seed, count) {
        (Some(seed), _) => {
            let seed = number(SEED_VAR, seed);
            seed..seed.saturating_add(1)
        }
        (None, Some(count)) => 0..number(COUNT_VAR, count),
        (None, None) => 0..n,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_environment_chooses_one_seed_or_how_many() {
        assert_eq!(choose(5, None, None), 0..5);
        assert_eq!(choose(5, Some("17"), Some("9")), 17..18);
        assert_eq!(choose(5, None, Some("9")), 0..9);
    }

    #[test]
    fn the_first_seed_that_fails_ends_the_run_with_its_own_panic() {
        let ran = RefCell::new(Vec::new());
        let run = || {
            seeds(10, |seed| {
                ran.borrow_mut().push(seed);
                assert!(seed < 3, "seed three");
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"seed three"));
        assert_eq!(*ran.borrow(), [0, 1, 2, 3]);
    }
}
