package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"serpcrypt/internal/skip"
)

// TestMountHelperOptions: which options become flags of open, which are for the file
// system, and which are for mount(8) alone.
func TestMountHelperOptions(t *testing.T) {
	for _, c := range []struct {
		options string
		want    string
	}{
		{"", ""},
		{"rw", ""},
		{"defaults,nofail,noauto,_netdev,users,x-systemd.requires=a.service,X-mount.mkdir,comment=a=b", ""},
		{"ro", "--readonly"},
		{"noatime,commit=60,discard", "-o noatime,commit=60,discard"},
		{"keyfile=/a b=c,ro,noatime", "--key-file=/a b=c --readonly -o noatime"},
		{`header="/a,b=c",context="a,b",keyfile=",x-y"`, `--header=/a,b=c --key-file=,x-y -o context="a,b"`},
		{"allow_other,allow-discards,raw", "--allow-other --allow-discards --raw"},
		{"header=/h,idle-timeout=10m,key-slot=3,keyfile-offset=1,keyfile-size=2", "--header=/h --idle-timeout=10m --key-slot=3 --keyfile-offset=1 --keyfile-size=2"},
		{"foreground,options=a,test-passphrase", "-o foreground,options=a,test-passphrase"},
	} {
		r, err := parseMount([]string{"box.luks", "/mnt", "-n", "-o", c.options})
		if err != nil {
			t.Fatal(err)
		}
		words, err := r.openWords()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(words, " ")
		want := strings.Join(strings.Fields("serpcrypt open "+c.want+" -- box.luks /mnt"), " ")
		if got != want {
			t.Errorf("%s: got %q, want %q", c.options, got, want)
		}
		if _, err := reorder(newApp(), words); err != nil {
			t.Errorf("%s: %v", c.options, err)
		}
	}
	for name, flag := range mountNames {
		if !slices.Contains(findMountFlag(name).Names(), flag) {
			t.Errorf("%s is not %s", name, flag)
		}
	}
}

// TestMountHelper has the real mount(8) mount containers, by type and by fstab, and
// umount close them.
func TestMountHelper(t *testing.T) {
	t.Parallel()
	helper, err := exec.LookPath(mountHelperName)
	if err != nil {
		t.Fatal(err)
	}
	umount, err := findProgram("umount")
	if err != nil {
		skip.Skip(t, err.Error())
	}
	sbin, err := filepath.EvalSymlinks("/sbin")
	if err != nil || filepath.Dir(umount) == sbin {
		skip.Skip(t, "mount(8) lies in /sbin, which is hidden here, or there is none")
	}
	dir := openFolder(t)
	o := runCommand(t, hiding(t, mountScript, helper, sbin, dir)).must(t, 0)
	if !strings.HasSuffix(o.stdout, "all done\n") {
		t.Errorf("the script ended early:\n%s%s", o.stdout, o.stderr)
	}
}

const mountScript = `set -e
export SERPCRYPT_RUNTIME_DIR="$3/run"
cd "$3"
printf secret >key
printf secret >'key, too'
printf other >wrong
serpcrypt create -q --size 16M --fs ext4 --pbkdf-force-iterations 1000 -d key box.luks
mkdir box
mount -t tmpfs none "$2"
ln -s "$1" "$2/mount.serpcrypt"
trap 'serpcrypt close --all 2>/dev/null || true' EXIT

closed() {
	for try in $(seq 500); do
		[ -n "$(serpcrypt status)" ] || return 0
		sleep 0.02
	done
	echo 'umount did not close it' >&2
	return 1
}

mount -t serpcrypt box.luks box -o keyfile=key,noatime
findmnt -n -o OPTIONS box | grep -q noatime
echo hello >box/letter
umount box
closed

mount -r -t serpcrypt box.luks box -o 'keyfile="key, too"'
grep -q hello box/letter
! touch box/more 2>/dev/null
umount box
closed

echo "$PWD/box.luks $PWD/box serpcrypt keyfile=$PWD/key,nofail,nosuid,x-systemd.idle-timeout=1min 0 0" >fstab
mount -T fstab "$PWD/box"
findmnt -n -o OPTIONS box | grep -q nosuid
mount -T fstab -a
umount box
mount -T fstab -a
grep -q hello box/letter
umount box
closed

code=0
mount -t serpcrypt box.luks box -o keyfile=wrong 2>said || code=$?
[ $code = 32 ]
grep -q 'no key slot opens' said
! mountpoint -q box
echo all done
`
