//! Credentials of a job, the identity of the server, and the secrecy of credentials.

use super::{KEYS, job, report, run, with_environment};
use crate::common::{Program, scratch};
use iolite_testing::{ObjectServer, Reply, Seen, certificate};

#[test]
pub fn digest_authentication_does_not_send_the_password() {
    // A nonce is valid for ten requests.
    let server = ObjectServer::behaving(|seen| {
        let nonce = format!("nonce=\"n{}\"", seen.number / 10);
        let is_known = seen.fields.get("authorization").is_some_and(|text| text.contains(&nonce));
        if is_known {
            return Reply::Granted;
        }
        let challenge = format!(
            "WWW-Authenticate: Basic realm=\"r\"\r\nWWW-Authenticate: Digest realm=\"r\", qop=\"auth\", algorithm=SHA-256, \
             {nonce}, opaque=\"o\", stale=true\r\n"
        );
        Reply::Refused(401, challenge.leak(), "who is it?")
    });
    let dir = scratch();
    let line = |line: &str| {
        let host = server.host();
        format!(
            "--name=job --ioengine=http --http_host={host} --filename=/f --bs=4k --size=128k --http_user=Mufasa \
             --http_pass=Circle {line}"
        )
    };
    let run = |how: &str| Program::own().line(dir.path(), &line(how));
    run("--rw=randwrite --verify=crc32c --http_auth=digest").ok();
    let digests: Vec<String> =
        server.requests().into_iter().filter_map(|mut seen| seen.fields.remove("authorization")).collect();
    assert!(digests.len() >= 64, "{digests:?}");
    for text in &digests {
        assert!(text.starts_with("Digest username=\"Mufasa\", realm=\"r\", nonce=\"n"), "{text}");
        assert!(text.contains("algorithm=SHA-256, qop=auth, nc=") && text.contains("opaque=\"o\""), "{text}");
    }
    let field = |text: &str, name: &str| {
        let mut words = text.split(", ").filter_map(|word| word.strip_prefix(name));
        words.next().expect("it is there").to_owned()
    };
    let mut counted: Vec<_> =
        digests.iter().map(|text| (field(text, "nonce="), field(text, "nc="))).collect();
    counted.sort_unstable();
    counted.dedup();
    assert_eq!(counted.len(), digests.len(), "each count is used once");
    // Each request tries a wrong password only once, so that the account is not locked.
    let strict = ObjectServer::behaving(|seen| {
        let challenge =
            format!("WWW-Authenticate: Digest realm=\"r\", qop=\"auth\", nonce=\"n{}\"\r\n", seen.number);
        Reply::Refused(401, challenge.leak(), "who is it?")
    });
    let host = strict.host();
    let wrong = format!(
        "--name=job --ioengine=http --http_host={host} --filename=/f --bs=4k --size=128k --http_user=Mufasa --http_pass=Circle \
         --http_auth=digest --rw=write --iodepth=8"
    );
    assert_eq!(Program::own().line(dir.path(), &wrong).code(), 1);
    let tried =
        strict.requests().into_iter().filter(|seen| seen.fields.contains_key("authorization")).count();
    assert!((1..=16).contains(&tried), "{tried} tries");
    // A server may offer only the other kind of authentication, or none that is supported.
    for (offered, auth, said) in [
        (
            "Digest realm=\"r\", nonce=\"n\"",
            "basic",
            "http_auth=basic: the server offers Digest; use http_auth=digest",
        ),
        ("Basic realm=\"r\"", "digest", "http_auth=digest: the server offers Basic; use http_auth=basic"),
        ("Negotiate", "digest", "the server offers Negotiate as authentication"),
    ] {
        let field = format!("WWW-Authenticate: {offered}\r\n");
        let one = ObjectServer::behaving(move |_| Reply::Refused(401, field.clone().leak(), ""));
        let job = format!("{} --http_host={} --http_auth={auth} --rw=write", line(""), one.host());
        let refused = Program::own().line(dir.path(), &job);
        assert_eq!(refused.code(), 1);
        assert!(refused.output().contains(said), "{}", refused.output());
    }
    // By default, the password is sent (Basic), and this server refuses it.
    let refused = run("--rw=write");
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("401 Unauthorized: who is it?"), "{}", refused.output());
    let told =
        Program::own().line(dir.path(), &line("--rw=write --http_auth=digest --http_verbose=2")).ok().stderr;
    assert!(told.contains("Authorization: ***") && !told.contains("Mufasa"), "{told}");
}

#[test]
pub fn keys_come_from_the_environment_or_a_file() {
    let dir = scratch();
    let server = ObjectServer::start();
    let line = format!(
        "--name=job --ioengine=http --http_mode=s3 --http_host={} --filename=/b/a --rw=write --bs=4k --size=4k",
        server.host()
    );
    let none = with_environment(dir.path(), &line, &[]);
    assert_eq!(none.code(), 1);
    assert!(none.output().contains("there are no keys: give http_s3_keyid"), "{}", none.output());
    let last = || server.requests().last().unwrap().fields.clone();
    let keys = [("AWS_ACCESS_KEY_ID", "ENVID"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_SESSION_TOKEN", "tok")];
    with_environment(dir.path(), &line, &keys).ok();
    assert!(last()["authorization"].contains("Credential=ENVID/"), "{:?}", last());
    assert_eq!(last()["x-amz-security-token"], "tok");
    std::fs::create_dir(dir.path().join(".aws")).unwrap();
    let file = "[default]\naws_access_key_id=FILEID\naws_secret_access_key=s\n[p]\naws_access_key_id=PID\n\
                aws_secret_access_key=s\n";
    std::fs::write(dir.path().join(".aws/credentials"), file).unwrap();
    with_environment(dir.path(), &line, &[]).ok();
    assert!(last()["authorization"].contains("Credential=FILEID/"), "{:?}", last());
    with_environment(dir.path(), &format!("{line} --http_s3_profile=p"), &keys).ok();
    assert!(last()["authorization"].contains("Credential=PID/"), "{:?}", last());
    let missing = with_environment(dir.path(), &format!("{line} --http_s3_profile=q"), &keys);
    assert!(missing.output().contains("there is no profile [q]"), "{}", missing.output());
    // The settings file may contain keys as well, and has the region.
    let settings = "[default]\nregion=eu-test-1\n[profile r]\naws_access_key_id=RID\naws_secret_access_key=s\n\
                    aws_session_token=rt\nregion=eu-test-2\n";
    std::fs::write(dir.path().join(".aws/config"), settings).unwrap();
    with_environment(dir.path(), &line, &[]).ok();
    assert!(last()["authorization"].contains("=FILEID/") && last()["authorization"].contains("/eu-test-1/"));
    with_environment(dir.path(), &format!("{line} --http_s3_profile=r"), &[]).ok();
    assert!(last()["authorization"].contains("=RID/") && last()["authorization"].contains("/eu-test-2/"));
    assert_eq!(last()["x-amz-security-token"], "rt");
    for (options, region) in
        [("--http_s3_region=us-east-1", "us-east-1"), ("--http_s3_keyid=K --http_s3_key=s", "us-east-1")]
    {
        with_environment(dir.path(), &format!("{line} {options}"), &[]).ok();
        assert!(last()["authorization"].contains(&format!("/{region}/")), "{options}: {:?}", last());
    }
    let missing = with_environment(dir.path(), &format!("{line} --http_s3_profile=q"), &keys);
    assert!(
        missing.output().contains(".aws/config: there is no profile [profile q]"),
        "{}",
        missing.output()
    );
    with_environment(dir.path(), &format!("{line} --http_s3_anonymous=1"), &keys).ok();
    assert!(!last().contains_key("authorization"), "{:?}", last());
}

#[test]
pub fn secrets_come_from_files_and_the_environment() {
    let dir = scratch();
    let server = ObjectServer::start();
    let last = || server.requests().last().unwrap().fields.clone();
    let line = |mode: &str, line: &str| {
        let host = server.host();
        format!(
            "--name=job --ioengine=http --http_mode={mode} --http_host={host} --filename=/b/a --rw=write --bs=4k \
             --size=4k --output-format=json {line}"
        )
    };
    let key = "0123456789abcdef0123456789abcdef";
    let files = [("pass", "sesame\n"), ("token", "t0k"), ("secret", "s\n"), ("sse", key), ("empty", "\n")];
    for (name, content) in files {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    let environment = [("A_PASS", "sesame"), ("A_TOKEN", "t0k"), ("A_SECRET", "s"), ("A_KEY", key)];
    let run = |mode: &str, options: &str| {
        with_environment(dir.path(), &line(mode, options), &environment).ok();
        last()
    };
    for password in ["http_pass_file=pass", "http_pass_env=A_PASS", "http_pass=no --http_pass_file=pass"] {
        let fields = run("webdav", &format!("--http_user=Aladdin --{password}"));
        assert_eq!(fields["authorization"], "Basic QWxhZGRpbjpzZXNhbWU=", "{password}");
    }
    for token in ["http_swift_auth_token_file=token", "http_swift_auth_token_env=A_TOKEN"] {
        assert_eq!(run("swift", &format!("--{token}"))["x-auth-token"], "t0k", "{token}");
    }
    for secrets in [
        "--http_s3_key_file=secret --http_s3_security_token_file=token --http_s3_sse_customer_key_file=sse",
        "--http_s3_key_env=A_SECRET --http_s3_security_token_env=A_TOKEN --http_s3_sse_customer_key_env=A_KEY",
    ] {
        let fields = run("s3", &format!("--http_s3_keyid=AKID {secrets}"));
        assert!(fields["authorization"].contains("Credential=AKID/"), "{fields:?}");
        assert_eq!(fields["x-amz-security-token"], "t0k");
        let name = "x-amz-server-side-encryption-customer-key";
        assert_eq!(fields[name], "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    }
    for (options, said) in [
        ("--http_user=u --http_pass_file=none", "http_pass_file: none: No such file"),
        ("--http_user=u --http_pass_file=empty", "http_pass_file: empty: it is empty"),
        ("--http_user=u --http_pass_env=A_NOTHING", "no environment variable A_NOTHING"),
    ] {
        let refused = with_environment(dir.path(), &line("webdav", options), &environment);
        assert_eq!(refused.code(), 1, "{options}");
        assert!(refused.output().contains(said), "{options}: {}", refused.output());
    }
}

#[test]
pub fn webdav_and_swift_have_their_own_ways_to_identify() {
    let server = ObjectServer::start();
    let last = || server.requests().last().unwrap().clone();
    let dir = scratch();
    let run = |line: &str| {
        let host = server.host();
        let line = format!("--name=job --ioengine=http --http_host={host} --bs=4k --size=8k {line}");
        Program::own().line(dir.path(), &line).ok()
    };
    run("--rw=write --filename=/f --http_user=Aladdin --http_pass=sesame");
    assert_eq!(last().fields["authorization"], "Basic QWxhZGRpbjpzZXNhbWU=");
    run("--rw=read --filename=f");
    assert!((last().path == "/f_4096_4096") && !last().fields.contains_key("authorization"));
    run("--rw=write --filename=/v1/c/o --http_mode=swift --http_swift_auth_token=t0k");
    assert_eq!((last().path.as_str(), last().fields["x-auth-token"].as_str()), ("/v1/c/o_4096_4096", "t0k"));
}

#[test]
pub fn secrets_are_shown_nowhere() {
    let server = ObjectServer::start();
    let dir = scratch();
    let secrets =
        ["the-secret-key", "the-token", "0123456789abcdef0123456789abcdef", "the-password", "the-swift"];
    let line = job(
        &server,
        "--filename=/b/a --rw=write --size=8k --http_s3_security_token=the-token --http_pass=the-password \
         --http_swift_auth_token=the-swift --http_s3_sse_customer_key=0123456789abcdef0123456789abcdef",
    );
    let job_file: String = line
        .split_whitespace()
        .map(|word| word.trim_start_matches("--"))
        .filter(|word| !word.starts_with("name="))
        .fold("[job]\n".to_owned(), |text, word| text + word + "\n");
    std::fs::write(dir.path().join("job.fio"), &job_file).unwrap();
    std::fs::write(dir.path().join("typo.fio"), "[job]\nioengine=http\nhttp_s3_key the-secret-key\n")
        .unwrap();
    let verbose = format!("{line} --http_verbose=2");
    for (line, marks) in [
        (format!("--output-format=json,normal {line}"), true),
        (format!("--debug=all {line}"), true),
        (verbose.clone(), true),
        ("--showcmd job.fio".to_owned(), true),
        ("--debug=parse typo.fio".to_owned(), false),
        ("--debug=parse --parse-only job.fio".to_owned(), true),
        (format!("{verbose} --http_host=127.0.0.1:1"), true),
        (format!("{line} --http_host=me:the-password@127.0.0.1:1"), true),
        (format!("--showcmd --debug=all {line} --http_host=http://me:the-password@127.0.0.1:1"), true),
    ] {
        let done = Program::own().line(dir.path(), &line);
        let told = done.output();
        for secret in secrets {
            assert!(!told.contains(secret), "{line}: {secret}:\n{told}");
        }
        assert!(!marks || told.contains("***"), "{line}: a placeholder stands there:\n{told}");
    }
    let told = Program::own().line(dir.path(), &verbose).ok().stderr;
    assert!(told.contains("> PUT /b/a_0_4096 HTTP/1.1") && told.contains("< 200"), "{told}");
    assert!(told.contains("Authorization: ***"), "{told}");
    let brief = Program::own().line(dir.path(), &format!("{line} --http_verbose=1")).ok().stderr;
    assert!(brief.contains("> PUT /b/a_0_4096") && !brief.contains("Authorization"), "{brief}");
}

#[test]
pub fn keys_in_the_open_are_warned_of() {
    let dir = scratch();
    let parse = |program: &Program, line: &str| {
        let line =
            format!("--parse-only --name=j --ioengine=http --rw=read --size=4k --filename=/b/a {line}");
        program.line(dir.path(), &line).ok()
    };
    let own = Program::own();
    let far = "--http_mode=s3 --http_host=s3.example.com";
    let warned = parse(&own, &format!("{far} {KEYS}"));
    assert!(
        warned.stderr.contains("https=off: keys, passwords or data go to s3.example.com"),
        "{}",
        warned.stderr
    );
    for fine in [
        format!("{KEYS} --https=on"),
        "--http_s3_anonymous=1".to_owned(),
        format!("{KEYS} --http_host=localhost:9000"),
    ] {
        assert_eq!(parse(&own, &format!("{far} {fine}")).stderr, "", "{fine}");
    }
    for (idle, why) in [
        (format!("--http_mode=s3 {KEYS} --http_s3_anonymous=1"), "http_s3_keyid: has no effect"),
        (format!("--http_mode=s3 {KEYS} --http_s3_profile=p"), "http_s3_profile: has no effect"),
        ("--http_mode=webdav --http_pass=p".to_owned(), "http_pass: has no effect: http_user is missing"),
        (format!("--http_mode=webdav {KEYS}"), "http_s3_key: has no effect: it is about http_mode=s3"),
        (
            "--http_mode=s3 --http_s3_anonymous=1 --http_swift_auth_token=t".to_owned(),
            "http_swift_auth_token: has no",
        ),
    ] {
        let warned = parse(&own, &format!("--http_host=localhost:9000 {idle}"));
        assert!(warned.stderr.contains(why), "{idle}: {}", warned.stderr);
    }
    let fio = Program::called_fio(dir.path());
    assert_eq!(parse(&fio, &format!("{far} {KEYS}")).stderr, "");
}

#[test]
pub fn encrypted_connections_check_certificates() {
    let authority = certificate("authority.crt").display().to_string();
    let write = "--filename=/b/a --rw=randwrite --size=256k --iodepth=4 --verify=crc32c";
    let trusting = format!("{write} --https=on --http_ca_file={authority}");
    let server = ObjectServer::encrypted("server", false);
    assert_eq!(report(&server, &trusting).job().ios(), [64, 64, 0]);
    // Large bodies, and bodies without a hash.
    let large = format!("{trusting} --bs=1m --size=4m --http_s3_unsigned_payload=1");
    assert_eq!(report(&server, &large).job().bytes(), [4 << 20, 4 << 20, 0]);
    let puts = server.requests();
    let unsigned =
        |seen: &Seen| seen.fields.get("x-amz-content-sha256").is_some_and(|text| text == "UNSIGNED-PAYLOAD");
    assert_eq!(puts.iter().filter(|seen| unsigned(seen)).count(), 4);
    // The system's authorities have not signed the server's certificate.
    let untrusted = run(&server, &format!("{write} --https=on"));
    assert_eq!(untrusted.code(), 1);
    let said = untrusted.output();
    assert!(
        said.contains("no encrypted connection") || said.contains("no certificates of authorities"),
        "{said}"
    );
    let wrong = ObjectServer::encrypted("elsewhere", false);
    let refused = run(&wrong, &trusting);
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("elsewhere.example"), "whose it is: {}", refused.output());
    assert_eq!(wrong.requests(), []);
    report(&wrong, &format!("{write} --https=insecure"));
    // A certificate that its owner has signed is trusted if it is named, although it is that of an authority.
    let own = ObjectServer::encrypted("own", false);
    let file = |name: &str| format!("{write} --https=on --http_ca_file={}", certificate(name).display());
    report(&own, &file("own.crt"));
    let before = own.requests().len();
    for (other, remedy) in [("authority.crt", "http_ca_file"), ("server.crt", "http_ca_file")] {
        let refused = run(&own, &file(other));
        assert_eq!(refused.code(), 1, "{other}");
        assert!(refused.output().contains(remedy), "{other}: {}", refused.output());
    }
    assert_eq!(own.requests().len(), before);
    // Some servers demand a certificate from the client.
    let demanding = ObjectServer::encrypted("server", true);
    assert_eq!(run(&demanding, &trusting).code(), 1);
    let (own, key) = (certificate("client.crt"), certificate("client.key"));
    let shown = format!("{trusting} --http_cert_file={} --http_key_file={}", own.display(), key.display());
    report(&demanding, &shown);
    // A server without encryption, and a client without encryption.
    let plain = run(&ObjectServer::start(), &format!("{trusting} --http_timeout=500ms"));
    assert_eq!(plain.code(), 1);
    assert_eq!(run(&server, write).code(), 1);
}
