#!/bin/bash
# Made the traces of this directory. It runs as root in a virtual machine that has nothing to lose: two CPUs, null_blk, and an
# empty ext4 of 32 MiB (mkfs.ext4 -b 4096 -J size=4 -N 64) on /dev/vda.
set -ex
d=/sys/kernel/config/nullb/nullb0
mkdir $d
# A disk in memory with a write cache that knows FUA and discards.
echo 64 >$d/size
echo 1 >$d/memory_backed
echo 1 >$d/discard
echo 16 >$d/cache_size
echo 2 >$d/submit_queues
echo 2 >$d/irqmode
echo 2000000 >$d/completion_nsec
echo 1 >$d/power
echo mq-deadline >/sys/block/nullb0/queue/scheduler
echo 32 >/sys/block/nullb0/queue/max_sectors_kb
blktrace -d /dev/nullb0 -d /dev/vda &
tracer=$!
sleep 1
# Sequential writes, each split in two.
taskset -c 0 dd if=/dev/zero of=/dev/nullb0 bs=64k count=4 oflag=direct
# Random reads and writes at a depth of 4, with a priority.
taskset -c 1 fio --name=r --filename=/dev/nullb0 --direct=1 --ioengine=libaio --iodepth=4 --rw=randrw --bsrange=4k-8k \
    --io_size=96k --size=32m --prioclass=1 --prio=3 --norandommap
# Writes that reach the medium before they are done.
dd if=/dev/zero of=/dev/nullb0 bs=4k count=3 seek=512 oflag=direct,dsync
# Neighbours that are merged, then a flush; a discard.
dd if=/dev/zero of=/dev/nullb0 bs=4k count=6 seek=1024 conv=fsync
blkdiscard -f -o 1048576 -l 524288 /dev/nullb0
# Reads at a depth while another process writes and flushes.
fio --filename=/dev/nullb0 --direct=1 --size=32m --bs=4k --name=reads --ioengine=libaio --iodepth=4 --rw=randread \
    --io_size=64k --name=flushes --ioengine=psync --rw=randwrite --io_size=16k --fsync=1
# The other disk: sequential reads, then what a filesystem does. Its journal writes behind a flush.
taskset -c 1 dd if=/dev/vda of=/dev/null bs=16k count=6 iflag=direct skip=3
mount -t ext4 /dev/vda /mnt
dd if=/dev/zero of=/mnt/file bs=8k count=4 conv=fsync
umount /mnt
sleep 1
kill -INT $tracer
wait $tracer
blkparse -i nullb0 -i vda -d both.dump -o text
awk '$6 == "Q" { print $1, $7, ($8 ~ /^[0-9]+$/) ? $8 " " $10 : "0 0" }' text >queued.txt
btt -i both.dump
