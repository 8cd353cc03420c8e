//! Every dependency's licence, against the list of those that go with ours.

use crate::cargo::Metadata;
use crate::spdx;

/// Licences that a dependency may have: permissive ones, which ask for no more than a notice. A crate under another
/// fails until somebody has read the licence and put it here.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    // Four clauses: keep the notice, do not claim to have written it, mark changes, borrow no name.
    "bzip2-1.0.6",
];

/// Checks the licence of every package in the build that is not ours.
///
/// # Errors
/// One line for each crate whose licence is not allowed, or which names none.
pub(crate) fn check(metadata: &Metadata) -> Result<String, Vec<String>> {
    let packages = metadata.others();
    let faults: Vec<String> = packages
        .iter()
        .filter_map(|(name, version, licence)| {
            let refused = spdx::refusal(licence, ALLOWED)?;
            Some(format!(
                "{name} {version} is under {licence:?}; not in xtask/src/licences.rs: {refused}"
            ))
        })
        .collect();
    if faults.is_empty() {
        Ok(format!("{} dependencies", packages.len()))
    } else {
        Err(faults)
    }
}
