//! What this program was built without (the features in its manifest), and what it says if it is asked for that. Help
//! and completion have all of it.

use iolite_options::RunOptions;
use iolite_types::built_without;

/// Refuses an option of this feature.
#[cfg(not(feature = "agents"))]
pub fn refuse(name: iolite_options::Name, option: &str, feature: &str) -> std::process::ExitCode {
    crate::messages::complain(name, &format_args!("{option}: {}", built_without(feature)));
    std::process::ExitCode::FAILURE
}

/// Checks that this program has what the run asks for, except for `--save`.
///
/// # Errors
/// It was built without that.
pub fn check(run: &RunOptions) -> Result<(), String> {
    let asked = [
        ("--live=full", run.live == iolite_options::LiveView::Full),
        ("--web", run.web.is_some()),
        ("--metrics", run.metrics.is_some()),
        ("--metrics-push", run.metrics_push.is_some()),
    ];
    match asked.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((option, _)) if cfg!(not(feature = "web")) => Err(format!("{option}: {}", built_without("web"))),
        _ => Ok(()),
    }
}

/// Checks that this program can keep runs.
///
/// # Errors
/// It was built without the store.
pub fn check_saving() -> Result<(), String> {
    if cfg!(feature = "history") { Ok(()) } else { Err(format!("--save: {}", built_without("history"))) }
}

/// Checks that this program has a subcommand.
///
/// # Errors
/// It was built without it.
pub fn check_command(name: &str) -> Result<(), String> {
    match name {
        "keys" if cfg!(not(feature = "agents")) => Err(built_without("agents")),
        "runs" if cfg!(not(feature = "history")) => Err(built_without("history")),
        "web" if cfg!(not(feature = "web")) => Err(built_without("web")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_refused_by_its_name() {
        let run = RunOptions { metrics_push: Some("http://h".to_owned()), ..RunOptions::default() };
        assert_eq!(check(&run).is_ok(), cfg!(feature = "web"));
        if let Err(why) = check(&run) {
            assert!(why.starts_with("--metrics-push: this program was built without it"), "{why}");
        }
        assert_eq!(check(&RunOptions::default()), Ok(()));
        assert_eq!(check_saving().is_ok(), cfg!(feature = "history"));
        let has = [cfg!(feature = "agents"), cfg!(feature = "history"), cfg!(feature = "web"), true];
        assert_eq!(["keys", "runs", "web", "sweep"].map(|name| check_command(name).is_ok()), has);
    }
}
