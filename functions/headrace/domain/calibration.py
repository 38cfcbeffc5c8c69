"""The measured and published numbers that plans rest on, each with its source."""

from __future__ import annotations

NIC_FRACTION = 0.707
"""Share of a NIC's line rate that NVMe/TCP carries: 8.84 of 12.5 GB/s per storage host in the largest published run
(Volumez, MLPerf Storage v1.0; anchors.md section 3)."""

NIC_FRACTION_SEEN = 0.748
"""The most that storage hosts were seen to serve: 9.345 of 12.5 GB/s in the second row of that run (1,140,744 MiB/s
over 128 hosts, anchors.md section 3). Neither row was bound by storage, so a NIC carries at least this; plans use the
smaller share, which leaves 5 % for readers that wait for each other."""

FLOW_BYTES_PER_S = 5 * 10**9 // 8
"""One TCP flow between machines that share no cluster placement group: 5 Gbit/s (aws-facts.md section 8)."""

ENA_EXPRESS_FLOW_BYTES_PER_S = 25 * 10**9 // 8
"""One flow when both ends have ENA Express: 25 Gbit/s (aws-facts.md section 8)."""

UNEVEN_READS = 4
"""How many times its even share a reader may want from one storage node at a moment; a margin, not a measurement."""

QUEUES_PER_CONTROLLER_MAX = 128
CONTROLLERS_MAX = 65_519
"""I/O queues that Linux's NVMe target gives a controller (NVMET_NR_QUEUES), and controller ids of a subsystem."""

QUEUE_BYTES = 256 * 1024
QUEUE_MEMORY_SHARE = 0.25
"""Kernel memory of one queue of 128 commands with its socket, and how much of a machine's memory all may take: assumed,
not measured."""

WORKLOAD_MARGIN = 1.03
"""The benchmark's formula agrees with 132 published rows within 3 % (data/README.md)."""

WORKLOAD_STAND_IN = "h100"
"""Accelerator whose published reads stand in where a workload has none of its own."""

DEFAULT_READ_BYTES_PER_S = 283_210_200
"""ResNet-50 on ImageNet by one A100-80GB: 2,470 images/s of 114,660 bytes (NVIDIA DeepLearningExamples@729963d)."""

CAPACITY_MARGIN = 1.10
"""Free space that XFS keeps allocation groups healthy with; a rule of practice, not a measurement."""

FILE_OVERHEAD_BYTES = 4096 + 512
"""Up to a block lost at the end of a file, and its inode, at mkfs.xfs defaults."""

VOLUME_OVERHEAD_BYTES = 300 * 10**6
"""mkfs.xfs refuses less than 300 MB (reliability.md section 6); log and headers fit in it."""

STRIPE_UNIT_BYTES = 128 * 1024
"""As in the largest published run; 512 KiB and more make mkfs.xfs shrink its log stripe (anchors.md section 1)."""

READ_AHEAD_BYTES = 128 * 1024
"""Linux reads so far ahead of a sequential reader (`read_ahead_kb` is 128 by default): no request is larger."""

READ_LATENCY_S: dict[str, float] = {"local": 0.000258, "fleet": 0.0006, "direct": 0.2}
"""One read, slow but usual. Local: the highest of the Netflix figures for EC2 NVMe (data/README.md). Fleet: that and
a TCP round trip within a zone, assumed. Direct: S3's 100 to 200 ms for small objects (S3 performance design)."""

CHECKPOINT_BYTES_PER_PARAMETER = 14
"""Two of weights and twelve of Adam's state: 104.7 GiB for 8.03e9 parameters, as MLPerf Storage's rules give for
Llama 3 of 8, 70, 405 and 1,381 billion (Submission_guidelines.md, table 2, which prints GiB as GB)."""

STRIPED_FROM_BYTES = 2**30
"""Smaller files stay in a reader's memory, so that their place in the fleet does not matter."""

STRIPED_VOLUMES_MAX = 8
"""File systems that share all nodes in the striped shape; more only add namespaces."""

STORAGE_NODES_MAX = 256
"""Every compute node mounts every volume and merges them in one overlay, which takes at most 500 layers."""

S3_GETS_PER_S = 5_500
"""GET requests per second that S3 gives one prefix before it splits it (Amazon S3, performance guidelines)."""

RANGED_ABOVE_BYTES = 32 * 2**20
RANGE_BYTES = 32 * 2**20
"""The agent reads larger objects in ranges of this size, a GET each."""

GETS_PER_S_PER_VCPU = 2_000
"""1,500 objects of 100 KiB took the staging client 0.70 CPU seconds (training-io.md section 5)."""

CROSS_REGION_VCPUS = 32
CROSS_REGION_SMALL_BYTES_PER_S = 5 * 10**9 // 8
"""To other regions: half of the NIC from 32 vCPU up, else 5 Gbit/s (aws-facts.md section 8)."""

ROOT_DISK_BYTES = 150 * 2**30
"""Of a compute node (`ROOT_GIB` of infra/nodes.py; a test holds the two equal)."""

LENT_BYTES_MAX = 2 * 10**12
LENT_SHARE_MAX = 0.5
"""The most of a storage node's SSDs that one compute node, and all of them, write to: the rest is the data set's."""

ROOT_DISK_WRITE_BYTES_PER_S = 125 * 10**6
"""EBS gp3 without extra throughput (service prices, EBS)."""

LAUNCH_S = 120.0
LAUNCH_SLOW_S = 400.0
"""28 s from fleet call to machine (Karpenter PR 3827), 30 s to 6 min until Systems Manager answers, documents."""

ENDING_S = 60.0
ENDING_SLOW_S = 300.0
"""From the job-done event to the last machine shutting down (anchors.md section 6)."""

ACCELERATOR_LOSSES_PER_HOUR = 2e-5
"""Each accelerator: 419 unexpected interruptions of 16,384 H100 within 54 days (The Llama 3 herd of models, arXiv
2407.21783, section 3.3.4)."""
MACHINE_LOSSES_PER_HOUR = 1e-5
"""Any machine on demand beside its accelerators: one loss in eleven years; an assumption, for nobody publishes it."""
SPOT_RECLAIMED_PERCENT = 30
"""Share of spot machines taken back in a month where the spot advisor says nothing, or `>20%`: an assumption."""
HOURS_PER_MONTH = 730

STAGING_SLOWDOWN = 2.0
TRAINING_SLOWDOWN = 1.10
"""By how much the dear end of an estimate lets a phase overrun; margins, not measurements."""
