#!/bin/bash
# boot.sh ROOT - boots the system in the folder ROOT, which has serpcrypt, some
# times, with its own systemd but the kernel of this machine, and has it do the
# steps of in-guest.sh. ROOT is changed; nothing may be mounted there after it.
. "$(dirname "$0")/../../scripts/common.sh"

[ $# = 1 ] || die "usage: boot.sh ROOT"
guest=$1
need_packages systemd-nspawn=systemd-container timeout=coreutils

cp test/packages/in-guest.sh "$guest/root/"
# Made before fstab is read, with the modes that udev gives them on a real machine;
# those of this one may differ.
{
	echo 'c /dev/fuse 0666 root root - 10:229'
	echo 'c /dev/loop-control 0660 root disk - 10:237'
	for n in {0..255}; do
		echo "b /dev/loop$n 0660 root disk - 7:$n"
	done
} >"$guest/etc/tmpfiles.d/devices.conf"
# The console of a machine that nobody sits at.
ln -sf /dev/null "$guest/etc/systemd/system/console-getty.service"
: >"$guest/etc/fstab"

for step in fstab units login; do
	cat >"$guest/etc/systemd/system/step.service" <<-UNIT
		[Unit]
		After=systemd-user-sessions.service systemd-logind.service srv-box.mount serpcrypt@box.service
		SuccessAction=poweroff
		FailureAction=poweroff
		[Service]
		Type=oneshot
		ExecStart=/bin/bash /root/in-guest.sh $step
		StandardOutput=file:/root/$step.log
		StandardError=inherit
		[Install]
		WantedBy=multi-user.target
	UNIT
	ln -sf ../step.service "$guest/etc/systemd/system/multi-user.target.wants/step.service"
	timeout -k 10 180 systemd-nspawn --quiet --register=no --keep-unit --machine="serpcrypt-boot-$$" --boot \
		--directory="$guest" --capability=CAP_IPC_LOCK --console=pipe >"$guest/root/console.log" 2>&1 </dev/null || true
	if ! grep -qx "$step: all as it should be" "$guest/root/$step.log"; then
		tail -n 30 "$guest/root/console.log"
		cat "$guest/root/$step.log" || true
		die "boot, step $step: failed"
	fi
	say "boot, step $step: ok"
done
