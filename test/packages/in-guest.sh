#!/bin/bash
# in-guest.sh STEP - what the machine that boot.sh boots does, as root: the commands
# of the sections of docs/boot.md, as the package has brought it, and what should
# be the case then. Each step is a boot.
set -eEuo pipefail
trap 'echo "failed: line $LINENO: $BASH_COMMAND"' ERR
cd /root
exec </dev/null

commands=/root/commands.sh
# section HEADING writes the commands below a heading of the document, or those
# before the first.
section() {
	awk -v want="$1" '/^## / { now = substr($0, 4) } /^    / && now == want { print substr($0, 5) }' \
		/usr/share/doc/serpcrypt/docs/boot.md >$commands
	[ -s $commands ] || { echo "no commands below $1"; return 1; }
}

# do_section HEADING runs them; every command must work.
do_section() {
	section "$1"
	bash -euxo pipefail $commands
}

is_open() { grep -qx "$1" "$2/letter"; }

# closed waits until nothing is open.
closed() {
	for try in {1..200}; do
		[ -n "$(serpcrypt status)" ] || return 0
		sleep 0.1
	done
	serpcrypt status
	return 1
}

as_ann() { su - ann -c "$1"; }

case $1 in
fstab)
	do_section ''
	# Between mount and umount there has to be a file system.
	section 'In /etc/fstab'
	sed -i 's|^umount|echo hello >/srv/box/letter; &|' $commands
	bash -euxo pipefail $commands
	closed
	[ ! -e /srv/box/letter ]
	systemctl daemon-reload
	systemctl start srv-box.mount
	is_open hello /srv/box
	systemctl restart srv-box.mount
	is_open hello /srv/box
	# A new version of the package leaves alone what is open.
	dpkg -i /root/serpcrypt.deb >/dev/null
	is_open hello /srv/box
	echo hello >/srv/box/second
	mount -a
	systemctl stop srv-box.mount
	closed
	# Nobody closes it before the machine goes down.
	mount -a
	echo late >/srv/box/late
	;;
units)
	# The line in fstab has had it opened.
	grep -x late /srv/box/late
	is_open hello /srv/box
	systemctl stop srv-box.mount
	closed
	sed -i '/serpcrypt/d' /etc/fstab
	systemctl daemon-reload

	section 'When the machine starts'
	sed -i 's|^systemctl stop|grep -x hello /srv/box/letter; &|' $commands
	bash -euxo pipefail $commands
	closed
	[ "$(systemctl is-active serpcrypt@box || true)" = inactive ]
	# Whoever unmounts ends the unit.
	systemctl start serpcrypt@box
	systemctl restart serpcrypt@box
	is_open hello /srv/box
	umount /srv/box
	closed
	sleep 1
	[ "$(systemctl is-active serpcrypt@box || true)" = inactive ]

	do_section 'A key that systemd encrypts'
	is_open hello /srv/box
	[ ! -e /etc/serpcrypt/box.key ]

	useradd -m -s /bin/bash ann
	section 'When a user logs in'
	cp $commands /tmp/ann.sh
	as_ann 'bash -euxo pipefail /tmp/ann.sh && echo dear >~/box/letter'
	;;
login)
	# The unit has had it opened, by the encrypted key.
	systemctl is-active serpcrypt@box
	is_open hello /srv/box
	[ ! -e /home/ann/box/letter ]
	as_ann 'for try in {1..100}; do [ -e ~/box/letter ] && break; sleep 0.1; done; grep -x dear ~/box/letter'
	for try in {1..300}; do # the manager of users who have gone ends after some seconds
		grep -q /home/ann/box /proc/mounts || break
		sleep 0.1
	done
	! grep /home/ann/box /proc/mounts

	# With the option user, mount(8) lets everybody.
	echo '/home/ann/box.luks /home/ann/box serpcrypt user,noauto,keyfile=/home/ann/.config/serpcrypt/box.key 0 0' >>/etc/fstab
	as_ann 'systemctl --user disable --now serpcrypt@box; set -ex; mount ~/box; grep " $HOME/box .*nosuid" /proc/mounts
		grep -x dear ~/box/letter; serpcrypt close ~/box'
	;;
esac
echo "$1: all as it should be"
