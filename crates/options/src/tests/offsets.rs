//! Where I/O goes.

use super::*;

#[test]
fn zones_have_a_range() {
    let job = &jobs(&["--name=j", "--zonemode=strided", "--zonesize=1m", "--zoneskip=2z"])[0];
    assert_eq!(
        (job.zones.zonemode, job.zones.zonesize, job.zones.zonerange),
        (ZoneMode::Strided, 1 << 20, 1 << 20)
    );
    assert_eq!(job.zones.zoneskip, ZoneSkip::Zones(2));
    let job = &jobs(&["--name=j", "--zonemode=strided", "--zonesize=1m", "--zonerange=4m"])[0];
    assert_eq!(job.zones.zonerange, 4 << 20);
    // As in fio: a range or a skip alone has no effect.
    let without = run(&["--name=j", "--zonerange=4m", "--zoneskip=1m"]);
    assert_eq!(without.batches[0][0].zones.zonemode, ZoneMode::None);
    assert_eq!(without.warnings.len(), 2);
    let refused = |word| errors(&["--name=j", word]).join(" ");
    assert!(refused("--zonemode=zdb").contains("zbd"));
    for word in ["--zone_reset_threshold=.4:.6", "--zone_reset_frequency=.4:.6"] {
        assert!(refused(word).contains("takes one number"));
    }
    assert!(refused("--zonesize=10%").contains("not in percent"));
}

#[test]
fn preconditioning_has_its_limits() {
    let job = &jobs(&["--name=j", "--rw=randwrite", "--sprandom=1", "--spr_op=0.28", "--spr_cs=1g"])[0];
    assert_eq!(
        (job.pattern.sprandom, job.pattern.spr_op, job.pattern.spr_cs, job.pattern.spr_num_regions),
        (true, 0.28, 1 << 30, 100)
    );
    let refused = |word| errors(&["--name=j", word]).join(" ");
    assert!(refused("--spr_op=1.2").contains("between 0 and 1"));
    assert!(refused("--spr_op=0").contains("between 0 and 1"));
    assert!(refused("--spr_num_regions=0").contains("at least 1"));
}
