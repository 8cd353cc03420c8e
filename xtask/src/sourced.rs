//! Peers that Debian has no package of: accel-ppp and BNG Blaster. A flag names a folder with the sources of each; they are
//! built below the target directory, and nothing is written into the folder. Without its flag a peer is not there, and the
//! report names it.

use crate::kernel::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flags of these peers. libdict is a library that BNG Blaster needs, and that Debian has no package of either.
pub(crate) const FLAGS: [&str; 3] = ["--accel-ppp", "--bngblaster", "--libdict"];

/// Folders with sources, and the other words of a command line.
#[derive(Debug, Default)]
pub(crate) struct Sources<'w> {
    folders: [Option<PathBuf>; FLAGS.len()],
    /// Names of tests, and `--measure`.
    pub(crate) others: Vec<&'w str>,
}

impl<'w> Sources<'w> {
    /// Reads the words after `cargo xtask interop`.
    ///
    /// # Errors
    /// A flag without its folder, or a folder without sources.
    pub(crate) fn of(words: &[&'w str]) -> Result<Self, String> {
        let mut sources = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(which) = FLAGS.iter().position(|flag| flag == word) else {
                sources.others.push(word);
                continue;
            };
            let folder = words.next();
            let folder =
                folder.ok_or_else(|| format!("{word}: a folder with sources is missing"))?;
            let folder =
                std::path::absolute(folder).map_err(|error| format!("{folder}: {error}"))?;
            if !folder.join("CMakeLists.txt").is_file() {
                return Err(format!(
                    "{word}: {} has no CMakeLists.txt; name a folder with the sources",
                    folder.display()
                ));
            }
            sources.folders[which] = Some(folder);
        }
        Ok(sources)
    }

    /// The peers whose flag is absent, each with what its tests need.
    pub(crate) fn absent(&self) -> Vec<(&'static str, String)> {
        let names = ["accel-ppp", "BNG Blaster"];
        let all = names.into_iter().zip(&self.folders).zip(FLAGS);
        all.filter(|((_, folder), _)| folder.is_none())
            .map(|((name, _), flag)| (name, format!("no {flag} DIR with its sources")))
            .collect()
    }

    /// Builds the peers, and returns the arguments that tell the interop program where they are.
    ///
    /// # Errors
    /// The output of cmake or of the compiler.
    pub(crate) fn build(&self, target: &Path) -> Result<Vec<PathBuf>, Vec<String>> {
        let [accel_ppp, bngblaster, libdict] = &self.folders;
        let mut arguments = Vec::new();
        let one = |fault: String| vec![fault];
        if let Some(folder) = accel_ppp {
            let built = self::accel_ppp(folder, &target.join("peers/accel-ppp")).map_err(one)?;
            arguments.extend(["--accel-ppp".into(), built]);
        }
        if let Some(folder) = bngblaster {
            let libdict = libdict.as_deref();
            let place = target.join("peers/bngblaster");
            let built = self::bngblaster(folder, libdict, &place).map_err(one)?;
            arguments.extend(["--bngblaster".into(), built]);
        }
        Ok(arguments)
    }
}

fn cmake(folder: &Path, place: &Path, options: &[&str], goals: &[&str]) -> Result<(), String> {
    run(Command::new("cmake")
        .arg("-S")
        .arg(folder)
        .arg("-B")
        .arg(place)
        .arg("-DCMAKE_BUILD_TYPE=Release")
        .args(options))?;
    let mut build = Command::new("cmake");
    build.arg("--build").arg(place).arg("--parallel");
    for goal in goals {
        build.args(["--target", goal]);
    }
    run(&mut build).map(drop)
}

/// Builds accel-ppp; its folder then has `accel-pppd`, and its modules and dictionary beside it.
fn accel_ppp(folder: &Path, place: &Path) -> Result<PathBuf, String> {
    let build = place.join("build");
    cmake(folder, &build, &["-DRADIUS=FALSE", "-DSHAPER=FALSE"], &[])?;
    let modules = place.join("modules");
    let copy = |from: &Path, to: &Path| {
        let copied = std::fs::copy(from, to).map(drop);
        copied.map_err(|error| format!("{}: {error}", from.display()))
    };
    std::fs::create_dir_all(&modules).map_err(|error| format!("{}: {error}", modules.display()))?;
    let mut folders = vec![build.join("accel-pppd")];
    while let Some(one) = folders.pop() {
        for entry in std::fs::read_dir(&one).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "so") {
                copy(&path, &modules.join(entry.file_name()))?;
            }
        }
    }
    copy(
        &build.join("accel-pppd/accel-pppd"),
        &place.join("accel-pppd"),
    )?;
    let dictionaries = place.join("dictionary");
    std::fs::create_dir_all(&dictionaries)
        .map_err(|error| format!("{}: {error}", dictionaries.display()))?;
    let sources = folder.join("accel-pppd/ctrl/l2tp/dict");
    for entry in std::fs::read_dir(&sources).into_iter().flatten().flatten() {
        copy(&entry.path(), &dictionaries.join(entry.file_name()))?;
    }
    Ok(place.to_owned())
}

/// Builds BNG Blaster, and libdict before it if its sources are given.
fn bngblaster(folder: &Path, libdict: Option<&Path>, place: &Path) -> Result<PathBuf, String> {
    let mut prefix = String::from("-DCMAKE_LIBRARY_PATH=");
    let mut include = String::from("-DCMAKE_C_STANDARD_INCLUDE_DIRECTORIES=");
    if let Some(libdict) = libdict {
        let build = place.join("libdict");
        let options = [
            "-DLIBDICT_SHARED=NO",
            "-DLIBDICT_TOOLS=NO",
            "-DLIBDICT_TESTS=NO",
        ];
        cmake(libdict, &build, &options, &[])?;
        // The program includes the headers by the name of their folder.
        let headers = build.join("include/libdict");
        std::fs::create_dir_all(&headers)
            .map_err(|error| format!("{}: {error}", headers.display()))?;
        let all = std::fs::read_dir(libdict.join("include"));
        for entry in all.into_iter().flatten().flatten() {
            std::fs::copy(entry.path(), headers.join(entry.file_name()))
                .map_err(|error| format!("{}: {error}", entry.path().display()))?;
        }
        prefix.push_str(&build.to_string_lossy());
        include.push_str(&build.join("include").to_string_lossy());
    }
    let build = place.join("build");
    cmake(folder, &build, &[&prefix, &include], &["bngblaster"]).map_err(|fault| {
        format!("{fault}\nBNG Blaster needs libjansson-dev, libssl-dev, libncurses-dev, and libdict, whose sources --libdict names")
    })?;
    Ok(build.join("code/bngblaster/bngblaster"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_taken_and_names_are_left() {
        let sources = Sources::of(&["nat", "pppoe"]).unwrap();
        assert_eq!(sources.others, ["nat", "pppoe"]);
        let absent: Vec<&str> = sources.absent().iter().map(|(name, _)| *name).collect();
        assert_eq!(absent, ["accel-ppp", "BNG Blaster"]);
    }

    #[test]
    fn a_folder_without_sources_is_named() {
        let fault = Sources::of(&["--accel-ppp", "/nonexistent"]).unwrap_err();
        assert!(
            fault.starts_with("--accel-ppp: /nonexistent has no CMakeLists.txt"),
            "{fault}"
        );
        assert!(Sources::of(&["--bngblaster"]).is_err());
    }
}
