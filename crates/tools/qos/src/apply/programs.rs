//! eBPF programs that filters run: loaded before the first change, and held while a change may have to be undone.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use reactor::bpf::{Program, ProgramKind};
use tc::compile::{self, Attached};
use tc::{Bpf, Change, FilterKind, Object, Tree, Verb};

/// Programs of this process, by the filter's name, and programs that were there, by number.
#[derive(Default)]
pub(super) struct Programs {
    own: HashMap<String, Own>,
    held: HashMap<u32, Program>,
    /// The numbers of held programs whose name has a hash of their instructions.
    attached: HashMap<String, u32>,
}

struct Own {
    program: Program,
    tag: [u8; 8],
}

/// Loads a program.
fn load(one: &Attached) -> Result<Own> {
    let program = Program::load(ProgramKind::Classifier, "headend_qos", &one.instructions);
    let program = program.map_err(|error| {
        anyhow!(
            "nothing was changed: the program of {} for {}, {} instructions: {error}\ngive [kernel] classifier = \"u32\" to \
             do without",
            one.name,
            one.parent,
            one.instructions.len()
        )
    })?;
    let (_, tag) = program.identity().context("cannot name a program")?;
    Ok(Own { program, tag })
}

impl Programs {
    /// Loads the programs that are neither loaded yet nor held, and unloads those that are not among them.
    ///
    /// # Errors
    /// The kernel refused one; the message has the last lines of its verifier.
    pub(super) fn load(&mut self, wanted: &[Attached]) -> Result<()> {
        self.own
            .retain(|name, _| wanted.iter().any(|one| one.name == *name));
        let mut missing: Vec<&Attached> = Vec::new();
        for one in wanted {
            let is_loaded =
                self.own.contains_key(&one.name) || self.attached.contains_key(&one.name);
            if !is_loaded && !missing.iter().any(|other| other.name == one.name) {
                missing.push(one);
            }
        }
        // The verifier's time is most of that of `apply`, and it runs on several cores at once.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for some in missing.chunks(cores) {
            let loaded: Vec<Result<Own>> = thread::scope(|scope| {
                let threads: Vec<_> = some
                    .iter()
                    .map(|one| scope.spawn(move || load(one)))
                    .collect();
                let results = threads.into_iter().map(|thread| {
                    let result = thread.join();
                    result.unwrap_or_else(|_| bail!("a thread that loads a program has failed"))
                });
                results.collect()
            });
            for (one, own) in some.iter().zip(loaded) {
                self.own.insert(one.name.clone(), own?);
            }
        }
        Ok(())
    }

    /// Writes the kernel's hashes of loaded programs to their filters.
    pub(super) fn mark(&self, tree: &mut Tree) {
        for filter in &mut tree.filters {
            if let FilterKind::Bpf(bpf) = &mut filter.kind
                && let Some(own) = self.own.get(&bpf.name)
            {
                bpf.tag = Some(own.tag);
            }
        }
    }

    /// Keeps the programs of a tree loaded, so that its filters can be made again.
    pub(super) fn hold(&mut self, tree: &Tree) {
        for filter in &tree.filters {
            let FilterKind::Bpf(Bpf {
                id: Some(id), name, ..
            }) = &filter.kind
            else {
                continue;
            };
            if !self.held.contains_key(id)
                && let Ok(program) = Program::by_id(*id)
            {
                self.held.insert(*id, program);
            }
            if self.held.contains_key(id) && name.starts_with(compile::PREFIX) {
                self.attached.insert(name.clone(), *id);
            }
        }
    }

    /// Takes filters out of a tree that is restored if their programs, of others, are gone. Returns a line for each.
    pub(super) fn prune(&mut self, device: &str, tree: &mut Tree) -> Vec<String> {
        self.hold(tree);
        let mut gone = Vec::new();
        tree.filters.retain(|filter| {
            let FilterKind::Bpf(Bpf {
                name,
                tag,
                id: Some(id),
                ..
            }) = &filter.kind
            else {
                return true;
            };
            let found = self.held.get(id).and_then(|one| one.identity().ok());
            let is_there = found.is_some_and(|(_, found)| tag.is_none_or(|tag| tag == found));
            if !is_there {
                gone.push(format!(
                    "{device}: the filter {name} of {}, priority {}, is not restored: its eBPF program is gone; attach \
                     it again",
                    filter.parent, filter.priority
                ));
            }
            is_there
        });
        gone
    }

    /// Ends what [`Programs::hold`] began.
    pub(super) fn release(&mut self) {
        self.held.clear();
        self.attached.clear();
    }

    /// The descriptor for a change of a filter with a program; `None` for other changes.
    ///
    /// # Errors
    /// The program is gone.
    pub(super) fn descriptor(&self, change: &Change) -> Result<Option<i32>> {
        let (Object::Filter(filter), true) = (&change.object, change.verb != Verb::Delete) else {
            return Ok(None);
        };
        let FilterKind::Bpf(bpf) = &filter.kind else {
            return Ok(None);
        };
        let own = self.own.get(&bpf.name);
        let own = own.filter(|own| bpf.tag.is_none_or(|tag| tag == own.tag));
        let id = bpf.id.or_else(|| self.attached.get(&bpf.name).copied());
        let held = id.and_then(|id| self.held.get(&id));
        let Some(program) = own.map(|own| &own.program).or(held) else {
            bail!("the program of the filter {} is gone", bpf.name);
        };
        Ok(Some(program.as_fd().as_raw_fd()))
    }
}
