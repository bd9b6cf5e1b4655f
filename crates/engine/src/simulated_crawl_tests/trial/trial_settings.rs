//! Draws the settings of a trial's lives, the events that happen to them, and the commands of the
//! operator.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crawl_archive::{Disk, WarcCompression};
use crawl_scheduler::Politeness;
use crawl_weburl::{HostKey, HostPatternMap, canonicalize};

use super::super::config;
use super::RandomNumberGenerator;
use super::program_life::RandomLifeEvents;
use super::simulated_disk::{DiskFault, SimulatedDisk};
use super::web::TrialWeb;
use crate::config::{Config, TrapAvoidance};
use crate::control::{AdjustableRules, CrawlCommand, StopUrgency};

/// The settings of a trial that every life (run of the program) shares.
pub(super) struct TrialSettings {
    dice: RandomNumberGenerator,
    dir: PathBuf,
    pub(super) warc: bool,
    links: bool,
    sitemaps: bool,
    traps: bool,
    politeness: Politeness,
    /// Patterns of URLs that the operator has excluded so far.
    excluded: Vec<String>,
    /// The random numbers for drawing commands.
    operator: RandomNumberGenerator,
    /// The random numbers for drawing the compression of each life's WARC files.
    compressions: RandomNumberGenerator,
}

impl TrialSettings {
    pub(super) fn draw(dice: &mut RandomNumberGenerator, dir: &Path) -> TrialSettings {
        TrialSettings {
            dir: dir.to_owned(),
            warc: dice.chance(70),
            links: dice.chance(30),
            sitemaps: dice.chance(50),
            traps: dice.chance(25),
            politeness: Politeness::default(),
            excluded: Vec::new(),
            operator: RandomNumberGenerator::new(dice.0 ^ 0x5DEE_CE66),
            compressions: RandomNumberGenerator::new(dice.0 ^ 0x7761_7263),
            dice: RandomNumberGenerator::new(dice.next()),
        }
    }

    /// Draws the limits that the operator sets.
    pub(super) fn draw_politeness(&mut self) {
        let dice = &mut self.dice;
        self.politeness = Politeness {
            delay: Duration::from_millis(200 + dice.below(3_000)),
            delay_factor: dice.below(3) as f64,
            per_host: if dice.chance(75) { 1 } else { 2 },
            per_address: 1 + dice.below(6) as u32,
            address_rate: None,
            concurrency: 1 + dice.below(8) as u32,
            look_ups: 1 + dice.below(8) as u32,
            max_retry_after: Duration::from_secs(30 + dice.below(500)),
            wait_max: Duration::from_secs(900),
            ..Politeness::default()
        };
    }

    /// Draws the settings of a life (run of the program), with new limits now and then.
    pub(super) fn config(
        &mut self,
        web: &TrialWeb,
        disk: &Arc<SimulatedDisk>,
        is_last: bool,
    ) -> Config {
        if self.dice.chance(40) {
            self.draw_politeness();
        }
        self.settings(web, disk, is_last)
    }

    /// Draws the settings of a life. The last lives have no budgets.
    pub(super) fn settings(
        &mut self,
        web: &TrialWeb,
        disk: &Arc<SimulatedDisk>,
        is_last: bool,
    ) -> Config {
        let seed = canonicalize(None, &web.seed_url()).unwrap();
        let faults = Arc::clone(disk);
        let dice = &mut self.dice;
        let mut config = config(&self.dir);
        config.seeds = vec![seed];
        config.disk = Disk::with_faults(faults);
        config.politeness = self.politeness.clone();
        config.scope.exclude = self.excluded.clone();
        config.hosts_in_memory = 1 + dice.below(8) as usize;
        config.retries = dice.below(4) as u32;
        config.warc = self.warc.then(|| {
            use WarcCompression::{Gzip, Plain, Zstd};
            [Gzip, Zstd, Plain][self.compressions.below(3) as usize]
        });
        config.links = self.links;
        config.sitemaps = self.sitemaps;
        config.traps = match self.traps {
            true => TrapAvoidance::default(),
            false => TrapAvoidance::OFF,
        };
        config.commit_within = Duration::from_millis(200 + dice.below(5_000));
        config.wait_unreachable = Duration::from_secs(match is_last {
            true => 1_000_000,
            false => dice.below(2_000),
        });
        if !is_last {
            let budgets = &mut config.budgets;
            let drawn = |dice: &mut RandomNumberGenerator, most| {
                dice.chance(15).then(|| 1 + dice.below(most))
            };
            budgets.max_pages = drawn(dice, 60);
            budgets.per_host.max_pages = drawn(dice, 12);
            budgets.max_time = drawn(dice, 300).map(Duration::from_secs);
        }
        config
    }

    /// Draws the events of a life (run of the program), and the fault of the disk.
    pub(super) fn fate(&mut self, is_last: bool) -> (RandomLifeEvents, Option<(u64, DiskFault)>) {
        let dice = &mut self.dice;
        let slowness = [0, 20, 300, 4_000][dice.below(4) as usize];
        let mut fate = RandomLifeEvents {
            killed_after: None,
            stopped_after: None,
            trouble: None,
            commands: Vec::new(),
            slowness,
        };
        if is_last {
            return (fate, None);
        }
        let latest = [20, 200, 1_500][dice.below(3) as usize];
        let at = dice.below(latest);
        match dice.below(10) {
            0..3 => fate.killed_after = Some(at),
            3 => fate.stopped_after = Some((1 + at, StopUrgency::Now)),
            4 => fate.stopped_after = Some((1 + at, StopUrgency::Drain)),
            5..8 => return (fate, Some((at, DiskFault::Death))),
            8 => return (fate, Some((at, DiskFault::Full))),
            _ => return (fate, Some((at, DiskFault::Broken))),
        }
        (fate, None)
    }

    /// Draws the commands of the operator in a life. In the last lives, first unparks all hosts.
    pub(super) fn commands(
        &mut self,
        web: &TrialWeb,
        config: &Config,
        is_last: bool,
    ) -> Vec<(u64, CrawlCommand)> {
        let mut commands = Vec::new();
        if is_last {
            let unpark = |host: String| (1, CrawlCommand::Unpark(HostKey::parse(&host).unwrap()));
            commands.extend(web.host_names().map(unpark));
        }
        let dice = &mut self.operator;
        let count = match dice.chance(60) {
            true => 0,
            false => 1 + dice.below(4),
        };
        for _ in 0..count {
            let latest = [20, 200, 1_000][dice.below(3) as usize];
            let after = 2 + dice.below(latest);
            let host = web.any_host(dice);
            let key = HostKey::parse(&host).unwrap();
            let command = match dice.below(9) {
                0 | 1 => CrawlCommand::Pause,
                2 | 3 => CrawlCommand::Delay {
                    host: dice.chance(50).then_some(key),
                    delay: Duration::from_millis(1_000 + dice.below(9_000)),
                },
                4 if !is_last => CrawlCommand::Park(key),
                5 => CrawlCommand::Unpark(key),
                6 => CrawlCommand::State,
                7 => {
                    self.excluded.push(format!("/p{}$", 1 + dice.below(12)));
                    CrawlCommand::Rules(Box::new(rules(config, &self.excluded)))
                }
                _ => CrawlCommand::Add(format!("http://{host}/p{}", dice.below(20))),
            };
            commands.push((after, command));
        }
        commands
    }
}

/// Returns the rules of a life (run of the program) with other exclusions.
fn rules(config: &Config, exclude: &[String]) -> AdjustableRules {
    AdjustableRules {
        politeness: config.politeness.clone(),
        budgets: config.budgets.clone(),
        include: Vec::new(),
        exclude: exclude.to_vec(),
        exclude_hosts: HostPatternMap::default(),
        shared_settings: None,
        config_text: String::new(),
        audited: serde_json::Map::new(),
    }
}
