//! `--showcmd`: its layout, and that it means the same as the job file.

use super::*;

// shared sample of 3.42
#[test]
fn the_layout_is_that_of_fio() {
    let text = "[global]\nsize=16m\nbs=4k\n[one]\nrw=randread\n[two]\nstonewall\nrw=write\nnumjobs=2\n";
    assert_eq!(
        printed(&["--showcmd", "-"], text),
        (
            "iolite --size=16m --bs=4k --name=one --rw=randread --name=two --stonewall --rw=write --numjobs=2 \n"
                .to_owned(),
            0
        )
    );
    let as_fio = invoke_as(&["--showcmd", "-"].map(OsString::from), "[a]\nthread\n", Name::Fio);
    assert_eq!(as_fio, Ok(Invocation::Print { text: "fio --name=a --thread \n".into(), status: 0 }));
}

#[test]
fn each_file_is_a_line() {
    let files = directory(&[("a.fio", "[one]\nthread\n"), ("b.fio", "[two]\n"), ("c.fio", "")]);
    let words = ["a.fio", "b.fio", "c.fio"].map(|name| path(&files, name));
    let (text, _) = printed(&["--showcmd", "--bs=8k", &words[0], &words[1], &words[2]], "");
    assert_eq!(
        text, "iolite --bs=8k --name=one --thread \niolite --name=two \n\n",
        "the defaults of the command line hold for the first file"
    );
    assert_eq!(printed(&["--showcmd"], ""), (String::new(), 0));
    let (text, _) = printed(&["--showcmd", "--section=b", "-"], "[global]\nbs=4k\n[a]\n[b]\n");
    assert_eq!(text, "iolite --bs=4k --name=b \n");
}

#[test]
fn defaults_of_the_command_line_are_shown_before_those_of_the_file() {
    let words = ["--size=8M", "--filename=a b", "--showcmd", "--name=own", "--rw=write", "--name=global"];
    let words = [&words[..], &["--bs=2k", "-"]].concat();
    let (text, _) = printed(&words, "[global]\nbs=8k\n[a]\n");
    assert_eq!(text, "iolite --size=8M --filename='a b' --bs=2k --bs=8k --name=a \n");
    assert_eq!(printed(&["--bs=2k", "--showcmd", "-"], ""), ("\n".to_owned(), 0));
}

#[test]
fn values_are_quoted_for_a_shell() {
    let (text, _) =
        printed(&["--showcmd", "-"], "[a b]\ndescription=say \"$x\"\nfilename=a b's\nrw=readwrite\n");
    assert_eq!(
        text,
        "iolite --name='a b' --description=\"say \\\"\\$x\\\"\" --rw=readwrite --filename='a b'\\''s' \n"
    );
}

/// On a command line the next word would become the value.
#[test]
fn showcmd_writes_the_job_name_for_log_options_without_value() {
    let (text, _) = printed(&["--showcmd", "-"], "[a b]\nwrite_lat_log\nwrite_bw_log=\nrw=write\n");
    assert_eq!(text, "iolite --name='a b' --write_lat_log='a b' --write_bw_log='a b' --rw=write \n");
    let defaults = "[global]\nwrite_lat_log\n[a]\n[b]\nwrite_lat_log=x\n[global]\nwrite_lat_log=y\n[c]\n";
    assert_eq!(
        printed(&["--showcmd", "-"], defaults).0,
        "iolite --name=a --write_lat_log=a --name=b --write_lat_log=b --write_lat_log=x --name=global \
         --write_lat_log=y --name=c \n"
    );
    assert_round_trip(defaults);
    assert_round_trip(
        "[global]\nwrite_bw_log\nwrite_iops_log\nwrite_hist_log\nlog_hist_msec=9\n[a]\nname=z\nrw=write\n[b]\n",
    );
}

/// Splits a line into words as a shell does, as far as `--showcmd` uses its quoting.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\n' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().extend(characters.by_ref().take_while(|&c| c != '\'')),
            '\\' => word.get_or_insert_default().extend(characters.next()),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(character) = characters.next().filter(|&c| c != '"') {
                    word.extend(if character == '\\' { characters.next() } else { Some(character) });
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// The options of a job, without their places.
fn meaning(mut job: JobOptions) -> JobOptions {
    job.given.clear();
    job.given_global.clear();
    for origin in job.origins.values_mut() {
        *origin = Origin::CommandLine(0);
    }
    // A name set by an option becomes the section's, with a format that keeps the file names.
    job.origins.remove("name");
    job.origins.remove("filename_format");
    let logs = &mut job.logs;
    for prefix in
        [&mut logs.write_bw_log, &mut logs.write_lat_log, &mut logs.write_iops_log, &mut logs.write_hist_log]
    {
        // Without a value, the job's name is meant.
        prefix.iter_mut().filter(|prefix| prefix.is_empty()).for_each(|prefix| prefix.clone_from(&job.name));
    }
    job
}

#[track_caller]
pub(super) fn assert_round_trip(text: &str) {
    let from_file = run_with(&["-"], text).batches.remove(0);
    let (line, _) = printed(&["--showcmd", "-"], text);
    let words = shell_words(&line);
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let from_line = run(&words).batches.remove(0);
    let meanings = |jobs: Vec<JobOptions>| jobs.into_iter().map(meaning).collect::<Vec<_>>();
    assert_eq!(meanings(from_line), meanings(from_file), "{line}");
}

#[test]
fn a_shown_command_line_means_the_same_as_the_file() {
    assert_round_trip("[global]\nbs=8k\n[g]\nrw=read\n[global]\nrw=write\n[h]\nsize=1m\n[h]\nsize=2m\n");
    assert_round_trip(
        "[one two]\nuserspace_reap=0\nfilename=a b\ndescription=it's \"x\" $y `z` \\\nioengine=libaio\nkb_base=1000\nbs=4k\n",
    );
    assert_round_trip(
        "[global]\nfilename_format=g.$jobname\n[a]\nname=b\n[c]\nfilename_format=$jobname.$filenum.$jobname\nname=d\n[e]\n",
    );
    assert_round_trip("[a]\nname=other name\nsize=2*$mb_memory\nthread\nfilename=${SIZE}\n");
}
