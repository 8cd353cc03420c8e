//! Disciplines made from a [`Spec`], and the numbers that they get.

use base::Instant;

use crate::discipline::Discipline;
use crate::plan::Make;
use crate::registry::Spec;

/// The deepest nesting of disciplines.
const DEPTH_MAX: usize = 16;

/// Why no tree can be made of a [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The options of a discipline do not fit together, or not with what is below it.
    #[error("{kind} {major:x}: {message}")]
    Unfit {
        /// Its kind.
        kind: &'static str,
        /// Its number, as in "1:".
        major: u16,
        /// What does not fit.
        message: String,
    },
    /// Disciplines are nested too deeply.
    #[error("disciplines are nested more than 16 deep")]
    Depth,
    /// There are more disciplines than names.
    #[error("there are more than 65,534 disciplines")]
    Names,
}

/// Major numbers of `spec` and all below it, parents first: 1 for the first, then the number of the class above where
/// that is free, as people number them: "10:" in class "1:10".
pub(super) fn majors(spec: &Spec) -> Result<Vec<u16>, SpecError> {
    let mut majors = Majors {
        given: Vec::new(),
        used: vec![false; 1 << 16],
        next: 1,
    };
    majors.used[0] = true;
    majors.used[0xffff] = true;
    majors.give(spec, 1, 0)?;
    Ok(majors.given)
}

struct Majors {
    given: Vec<u16>,
    used: Vec<bool>,
    next: usize,
}

impl Majors {
    fn give(&mut self, spec: &Spec, wanted: u16, depth: usize) -> Result<(), SpecError> {
        if depth >= DEPTH_MAX {
            return Err(SpecError::Depth);
        }
        let major = if self.used[usize::from(wanted)] {
            let free = (self.next..1 << 16).find(|&major| !self.used[major]);
            self.next = free.ok_or(SpecError::Names)?;
            self.next as u16
        } else {
            wanted
        };
        self.used[usize::from(major)] = true;
        self.given.push(major);
        for (minor, child) in spec.children() {
            self.give(child, minor, depth + 1)?;
        }
        Ok(())
    }
}

/// The context in which a tree's disciplines are made.
pub(super) struct Maker<'m> {
    pub(super) majors: core::slice::Iter<'m, u16>,
    pub(super) seed: u64,
    pub(super) now: Instant,
    /// Whether this tree replaces another. Buckets without a known level then start in debt.
    pub(super) is_change: bool,
}

/// The discipline that was in a place before, and its spec.
pub(super) type Former<'f> = Option<(&'f Spec, &'f dyn Discipline)>;

impl Maker<'_> {
    /// Makes a discipline and those below it, parents first.
    pub(super) fn make(
        &mut self,
        spec: &Spec,
        former: Former<'_>,
    ) -> Result<Box<dyn Discipline>, SpecError> {
        let major = self.majors.next().copied().unwrap_or(0);
        let former = former.filter(|(was, _)| was.kind() == spec.kind());
        let mut children = Vec::new();
        let former_children = former.map(|(was, discipline)| below(was, discipline));
        for (minor, child) in spec.children() {
            let same = former_children.iter().flatten();
            let mut same = same.filter(|(was, ..)| *was == minor);
            let was = same.next().map(|&(_, spec, discipline)| (spec, discipline));
            children.push((minor, self.make(child, was)?));
        }
        let make = Make {
            major,
            seed: self.seed,
            now: self.now,
            is_change: self.is_change,
            levels: former.map_or_else(Vec::new, |(_, was)| was.levels(self.now)),
            children,
        };
        let made = spec.plan().make(make);
        made.map_err(|unfit| SpecError::Unfit {
            kind: spec.kind(),
            major,
            message: unfit.0,
        })
    }
}

/// The children of a discipline: class number, spec, and discipline.
pub(super) fn below<'d>(
    spec: &'d Spec,
    discipline: &'d dyn Discipline,
) -> Vec<(u16, &'d Spec, &'d dyn Discipline)> {
    let disciplines = discipline.children();
    let both = spec.children().into_iter().zip(disciplines);
    both.map(|((minor, spec), (_, discipline))| (minor, spec, discipline))
        .collect()
}
