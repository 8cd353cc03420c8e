//! `headend man` and `headend completions`: manual pages and shell completions, written from the declarations of the
//! command line. clap does not parse the flags of `headend trace`, which have tcptrace's syntax; that verb's own table
//! describes them here.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, ValueEnum};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

/// Write manual pages.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The directory for one page per verb, created if it does not exist; without it, the page of headend goes to
    /// standard output
    dir: Option<PathBuf>,
    /// The directory for the pages, in place of DIR
    #[arg(short, long, value_name = "DIR", conflicts_with = "dir")]
    out: Option<PathBuf>,
}

/// Print shell completions.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads them
    shell: Known,
}

/// A shell that headend writes completions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Known {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

impl From<Known> for Shell {
    fn from(known: Known) -> Shell {
        match known {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        }
    }
}

/// The command line with the flags of `headend trace`.
pub(crate) fn described(command: Command) -> Command {
    command.mut_subcommand("trace", |trace| trace.args(tool_trace::flags()))
}

/// Writes the pages.
pub(crate) fn man(command: Command, args: &ManArgs) -> Result<ExitCode> {
    match args.dir.as_ref().or(args.out.as_ref()) {
        Some(dir) => {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            for (name, page) in pages(command)? {
                write(&dir.join(name), &page)?;
            }
        }
        None => io::stdout().write_all(&page(&command)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the completions.
pub(crate) fn completions(command: &Command, args: &CompletionsArgs) -> Result<ExitCode> {
    io::stdout().write_all(&completions_for(command, args.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn completions_for(command: &Command, shell: Known) -> Vec<u8> {
    // The generator panics if it cannot write, so it does not get the pipe itself.
    let mut text = Vec::new();
    generate(
        Shell::from(shell),
        &mut visible(command),
        "headend",
        &mut text,
    );
    text
}

/// `command` without hidden verbs and flags, which the generator would include.
fn visible(command: &Command) -> Command {
    // A name must live as long as the program. This runs once, before the program ends.
    let name: &'static str = command.get_name().to_owned().leak();
    let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut shown = Command::new(name)
        .disable_help_flag(command.is_disable_help_flag_set())
        .args(flags.cloned())
        .subcommands(verbs.map(visible));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}

fn write(path: &Path, page: &[u8]) -> Result<()> {
    fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// The page of every verb with its file name, `headend-show-tunnels.1`; hidden verbs have none.
fn pages(mut command: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    // Global flags are part of each verb then, and each verb knows its whole name.
    command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let mut open = vec![command];
    while let Some(command) = open.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        pages.push((format!("{name}.1"), page(&command)?));
        let below = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        open.extend(below.cloned());
    }
    Ok(pages)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_visible_verb_has_a_page_with_its_flags() {
        let pages = pages(described(Cli::command())).unwrap();
        let page = |name: &str| {
            let found = pages.iter().find(|(file, _)| file == name);
            let (_, page) = found.unwrap_or_else(|| panic!("no page {name}"));
            String::from_utf8(page.clone()).unwrap()
        };
        assert!(page("headend.1").contains("headend\\-show(1)"));
        assert!(page("headend-show-tunnels.1").contains("\\-\\-ended"));
        assert!(page("headend-ping.1").contains("\\-\\-responder"));
        let trace = page("headend-trace.1");
        for flag in ["\\fB\\-l\\fR", "\\-\\-parquet", "\\-\\-csv"] {
            assert!(trace.contains(flag), "{flag} is not in\n{trace}");
        }
        let hidden =
            |(file, _): &&(String, Vec<u8>)| file.contains("bare") || file.contains("help");
        assert_eq!(pages.iter().find(hidden).map(|(file, _)| file), None);
    }

    #[test]
    fn each_shell_completes_verbs_and_flags_except_hidden_ones() {
        for known in Known::value_variants() {
            let text = completions_for(&described(Cli::command()), *known);
            let text = String::from_utf8(text).unwrap();
            for wanted in ["emulate", "subscribers", "ended", "parquet", "responder"] {
                assert!(text.contains(wanted), "{known:?}: {wanted}");
            }
            for hidden in ["tunnels-bare", "with-parent", "keep-offloads-off"] {
                assert!(!text.contains(hidden), "{known:?}: {hidden}");
            }
        }
    }
}
